"""The belief state of a pizza-ordering bot, by rules: thirty lines as teams write them."""

from __future__ import annotations

import re

from pytest_dstfuzz import Context

TOPPING = (
    r"\b(mushrooms?|olives?|ham|pineapple|jalapenos?|pepperoni|cheese|spinach|onions?|tuna|bacon"
    r"|peppers?|anchovies|capers|tomatoes|basil|chicken|sweetcorn)\b"
)
RULES = {
    "order-size": r"\b(small|medium|large)\b",
    "order-crust": r"\b(thin|stuffed|gluten free)(?= crust| base| one)|\b(deep pan)\b",
    "delivery-address": r"\b(\d+ (?:[a-z]+ )+?(?:lane|road|street|hill|view|avenue|close))\b",
    "delivery-time": r"\b(?:at|by|after|before|around) (\d{1,2}:\d{2}(?: ?[ap]m)?|\d{1,2} ?[ap]m)",
    "payment-method": r"\b(?:pay|paying|by|with|use|have|take)\b.*\b(card|cash|voucher|paypal)\b",
}


def track(context: Context) -> dict[str, str]:
    """Return the slots that the user has filled so far; toppings are numbered."""
    state: dict[str, str] = {}
    toppings: list[str] = []
    for exchange in context.exchanges:
        said = exchange.user.lower()
        for slot, pattern in RULES.items():
            if match := re.search(pattern, said):
                state[slot] = next(group for group in match.groups() if group)
        if "pay" in exchange.system and (match := re.match(r"(card|cash)\b", said)):
            state["payment-method"] = match.group(1)
        if match := re.search(r"\b(collect)\b", said):
            state["delivery-address"] = match.group(1)
        unwanted = re.findall(rf"\b(?:no|without|leave out)(?: the)? {TOPPING}", said)
        named = [*toppings, *re.findall(TOPPING, said)]
        toppings = [name for name in dict.fromkeys(named) if name not in unwanted]
    return state | {f"order-topping {n}": name for n, name in enumerate(toppings, start=1)}
