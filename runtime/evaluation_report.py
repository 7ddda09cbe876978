"""What the held-out evaluation found: right answers by category, examples of wrong ones."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Failure:
    """One wrong answer: what was asked, what came, why it is wrong."""

    id: str
    question: str
    reasoning: str
    answer: str
    why: str


@dataclass(slots=True)
class Category:
    """asked, right: counts. leaked: open answers with a value of the fact tables; none is allowed."""

    target: float
    asked: int = 0
    right: int = 0
    leaked: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Part of right answers, 0 to 1."""
        return self.right / self.asked if self.asked else 0.0

    @property
    def reached(self) -> bool:
        return self.rate >= self.target and not self.leaked


@dataclass(slots=True)
class Report:
    """All categories in the order of TARGETS. tokens: generated ones; seconds: wall clock."""

    model: str
    quick: bool
    categories: dict[str, Category]
    seconds: float = 0.0

    @property
    def reached(self) -> bool:
        return all(category.reached for category in self.categories.values())

    def as_json(self) -> dict[str, Any]:
        """Plain values; each category with its rate and whether the target is reached."""
        categories = {
            name: asdict(c) | {"rate": round(c.rate, 4), "reached": c.reached}
            for name, c in self.categories.items()
        }
        return {
            "model": self.model,
            "quick": self.quick,
            "seconds": round(self.seconds, 1),
            "reached": self.reached,
            "categories": categories,
        }
