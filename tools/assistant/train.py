"""Trains the assistant that ships: ``python -m tools.assistant.train --help``.

Needs the extra ``train``. The assistant learns only from the training split of the schema-guided
dialogues. The development split only serves to measure. Training uses one thread, so that the same
seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pytest_dstfuzz.models.assistant.features import ToolView, read_tools, tokens
from pytest_dstfuzz.seeding import derive
from tools.assistant.network import AssistantNetwork, collate, losses
from tools.assistant.rows import Reader, Row, Table
from tools.assistant.sgd import SgdDialogue, read_split

#: Words with a vector of their own: those that as many services as this have in common.
_SERVICES, _SEEN = 8, 40


def common_words(dialogues: Sequence[SgdDialogue]) -> list[str]:
    """Return the words that many services use, because they say what is done, not with what."""
    services: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for dialogue in dialogues:
        owners = set(dialogue.services.values())
        for message in dialogue.messages:
            if message["role"] != "tool" and message["content"]:
                for token in tokens(message["content"]):
                    counts[token.lower] += 1
                    services.setdefault(token.lower, set()).update(owners)
    kept = [
        word
        for word, count in counts.items()
        if count >= _SEEN and len(services[word]) >= _SERVICES and not any(map(str.isdigit, word))
    ]
    return sorted(kept, key=lambda word: (-counts[word], word))[:2500]


def make_rows(
    dialogues: Sequence[SgdDialogue], common: Sequence[str], table: Table, seed: int
) -> list[Row]:
    """Return the rows of dialogues. Sometimes, tools of other dialogues are added to the list."""
    places = {word: place for place, word in enumerate(common, 1)}
    others: dict[str, ToolView] = {}
    for dialogue in dialogues:
        for tool in read_tools(dialogue.tools):
            others.setdefault(f"{tool.name} {tool.description}", tool)
    rows: list[Row] = []
    for dialogue in dialogues:
        rng = np.random.Generator(np.random.PCG64(derive(seed, f"rows {dialogue.name}")))
        reader = Reader(table, places, rng, list(others.values()))
        # Turns at which nothing happens are many, and much alike.
        rows += [row for row in reader.rows(dialogue) if _says_much(row) or rng.random() < 0.6]
    return rows


def _says_much(row: Row) -> bool:
    return row.call > 0 or any(not slot.right[0] and slot.right.any() for slot in row.slots)


def batches(rows: Sequence[Row], size: int, rng: np.random.Generator) -> list[list[Row]]:
    """Return batches of turns of similar length, in random order."""
    keys = [len(row.slots) * 20 + len(row.vectors) * 2 + rng.random() * 20 for row in rows]
    order = np.argsort(keys)
    groups = [order[at : at + size] for at in range(0, len(rows), size)]
    return [[rows[int(place)] for place in groups[int(n)]] for n in rng.permutation(len(groups))]


@torch.no_grad()
def measure(network: AssistantNetwork, rows: Sequence[Row]) -> dict[str, float]:
    """Return the shares of right answers over rows. Earlier turns count as answered rightly."""
    network.eval()
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()

    def count(name: str, good: torch.Tensor) -> None:
        right[name] += int(good.sum())
        total[name] += good.numel()

    rng = np.random.Generator(np.random.PCG64(0))
    for group in batches(rows, 128, rng):
        batch = collate(group)
        states = network.encode(batch)
        count("tool", network.score_tools(batch, states).argmax(-1) == batch.active)
        answers, ends = network.score_slots(batch, states)
        picked = answers.argmax(-1, keepdim=True)
        good = batch.right.gather(-1, picked).squeeze(-1)
        known = batch.right.any(-1)
        spans = batch.span[..., 0] >= 0
        exact = (ends.argmax(2) == batch.span).all(-1)
        good &= ~(spans & (picked.squeeze(-1) == 2)) | exact
        count("slot", good[known])
        count("new", good[known & ~batch.right[..., 0]])
        count("span", exact[spans])
        count("turn", (good | ~known).all(-1))
        asked = batch.call >= 0
        if asked.any():
            chosen = batch.tools[torch.arange(len(group)), (batch.active - 1).clamp_min(0)]
            score = network.score_call(batch, states, chosen)[asked]
            count("call", (score > 0) == (batch.call[asked] == 1))
    network.train()
    return {name: round(right[name] / max(total[name], 1), 4) for name in total}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sgd", type=Path, required=True, help="folder with train.zip and dev.zip")
    parser.add_argument("--work", type=Path, required=True, help="folder for checkpoints")
    parser.add_argument("--output", type=Path, required=True, help="file to write (.npz)")
    parser.add_argument("--dialogues", type=int, help="maximum number of training dialogues")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    train(options)
    return 0


_Prepared = tuple[list[str], np.ndarray, list[Row], list[Row]]


def _prepared(
    options: argparse.Namespace, say: Callable[[str], None]
) -> tuple[list[str], np.ndarray, list[Row], list[Row]]:
    kept = options.work / "rows.pickle"
    if kept.exists():
        # Written by this command a moment ago, into a folder of the one who runs it.
        with kept.open("rb") as file:
            prepared: _Prepared = pickle.load(file)  # noqa: S301 - see above
    else:
        archive = options.sgd / "train.zip"
        dialogues = list(read_split(archive, "train", options.dialogues))
        heldout = list(read_split(options.sgd / "dev.zip", "dev", 300))
        common = common_words(dialogues)
        table = Table()
        rows = make_rows(dialogues, common, table, options.seed)
        say(f"{len(rows)} rows of {len(dialogues)} dialogues, {len(common)} common words")
        valid = make_rows(heldout, common, table, options.seed)
        prepared = common, np.stack(table.rows), rows, valid
        with kept.open("wb") as file:
            pickle.dump(prepared, file)
    say(f"{len(prepared[2])} rows, {len(prepared[3])} held out, {len(prepared[1])} vectors")
    return prepared


class _Run:
    """A training run: the network, its optimiser, and the average of its weights."""

    def __init__(
        self, network: AssistantNetwork, options: argparse.Namespace, steps_an_epoch: int
    ) -> None:
        self.network, self._work = network, options.work
        self.epoch, self._an_epoch = 0, steps_an_epoch
        weights = network.parameters()
        self._optimiser = torch.optim.AdamW(weights, lr=options.learning_rate, weight_decay=0.01)
        self._average = [one.detach().clone() for one in network.parameters()]
        steps = options.epochs * steps_an_epoch
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimiser, lambda step: min((step + 1) / 300, max(0.02, 1 - step / steps))
        )

    def learn(self, parts: Mapping[str, torch.Tensor], number: int) -> None:
        """Take one step of the training, the ``number``-th of its epoch."""
        self._optimiser.zero_grad()
        loss = torch.stack(list(parts.values())).sum()
        loss.backward()  # type: ignore[no-untyped-call]  # torch says no types of it
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self._optimiser.step()
        self._schedule.step()
        done = self.epoch * self._an_epoch + number
        rate = min(0.998, (1 + done) / (10 + done))
        with torch.no_grad():
            for kept, now in zip(self._average, self.network.parameters(), strict=True):
                kept.lerp_(now, 1 - rate)

    @contextmanager
    def averaged(self) -> Iterator[AssistantNetwork]:
        """Give the network the average of its weights within this context."""
        before = [one.detach().clone() for one in self.network.parameters()]
        self._set(self._average)
        yield self.network
        self._set(before)

    @torch.no_grad()
    def _set(self, weights: Sequence[torch.Tensor]) -> None:
        for parameter, weight in zip(self.network.parameters(), weights, strict=True):
            parameter.copy_(weight)

    def resume(self) -> None:
        """If an earlier run was stopped, continue after its last whole epoch."""
        path = self._work / "state.pt"
        if path.exists():
            state = torch.load(path, weights_only=True)
            self.network.load_state_dict(state["network"])
            self._optimiser.load_state_dict(state["optimiser"])
            self._schedule.load_state_dict(state["schedule"])
            self._average, self.epoch = state["average"], state["epoch"]

    def end_epoch(self, common: Sequence[str]) -> Path:
        """Store the state, write the weights as they would ship, and return their path."""
        path: Path = self._work / f"epoch{self.epoch}.npz"
        self.epoch += 1
        state = {
            "network": self.network.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "schedule": self._schedule.state_dict(),
            "average": self._average,
            "epoch": self.epoch,
        }
        torch.save(state, self._work / "state.pt")
        named: dict[str, Any] = {
            name: weight.to(torch.float16).numpy()
            for (name, _), weight in zip(
                self.network.named_parameters(), self._average, strict=True
            )
        }
        words = np.frombuffer("\n".join(common).encode(), np.uint8)
        np.savez(path, common_words=words, **named)
        return path


def train(options: argparse.Namespace) -> None:
    """Train epoch by epoch. If a run was stopped, continue after its last whole epoch."""
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {text}", flush=True)

    options.work.mkdir(parents=True, exist_ok=True)
    common, table, rows, valid = _prepared(options, say)
    torch.manual_seed(derive(options.seed, "weights") % 2**63)
    network = AssistantNetwork(torch.from_numpy(table.astype(np.float32)), len(common) + 1)
    say(f"{sum(p.numel() for p in network.parameters())} weights")
    run = _Run(network, options, -(-len(rows) // options.batch_size))
    run.resume()
    while run.epoch < options.epochs:
        torch.manual_seed(derive(options.seed, f"dropout {run.epoch}") % 2**63)
        rng = np.random.Generator(np.random.PCG64(derive(options.seed, f"order {run.epoch}")))
        sums: dict[str, float] = {}
        for number, group in enumerate(batches(rows, options.batch_size, rng)):
            parts = losses(network, collate(group))
            run.learn(parts, number)
            for name, part in parts.items():
                sums[name] = sums.get(name, 0.0) + float(part.detach())
            if number % 200 == 199:
                shown = {name: round(total / (number + 1), 4) for name, total in sums.items()}
                say(f"epoch {run.epoch}, step {number + 1} {shown}")
        path = run.end_epoch(common)
        with run.averaged() as averaged:
            say(f"{path.name}: held out {measure(averaged, valid)}")
        # The learning rate falls to the end, so the last is the best.
        options.output.write_bytes(path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
