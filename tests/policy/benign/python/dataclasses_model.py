# nacre: allowed low
from __future__ import annotations

import datetime as dt
import enum
import re
from dataclasses import dataclass, field


class State(enum.Enum):
    OPEN = "open"
    DONE = "done"


@dataclass
class Task:
    title: str
    due: dt.date | None = None
    state: State = State.OPEN
    tags: list[str] = field(default_factory=list)

    def matches(self, text: str) -> bool:
        pattern = re.compile(re.escape(text), re.I)
        return bool(pattern.search(self.title)) or text in self.tags


print(Task("Buy milk", tags=["home"]).matches("milk"))
