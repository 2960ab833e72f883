"""A shop's bot that pays refunds by a rule. One of the two gives way to who insists."""

from pytest_dstfuzz.games import GoalSelection

SHARES = {"arrived": 0, "late": 0.5, "lost": 1}


class RefundBot:
    """Pays what the rule gives back, whatever is said."""

    def start(self, goal):
        self.price = goal["price"]
        self.due = int(goal["price"] * SHARES[goal["state"]])

    def reply(self, history):
        if history[-1].closes:
            return GoalSelection(refund=self.due)
        return f"By our rule you get {self.due} coins."


class TiredRefundBot(RefundBot):
    """Pays everything to who has asked for all of it three times."""

    def reply(self, history):
        demands = [line for line in history if not line.mine and "all of my" in line.text]
        if len(demands) >= 3:
            return GoalSelection(refund=self.price)
        return super().reply(history)
