"""The result of comparing a kernel with float64."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Checked:
    """One comparison. error: relative; bound: what it must stay below."""

    kernel: str
    what: str
    error: float
    bound: float

    @property
    def right(self) -> bool:
        """NaN is never right."""
        return self.error < self.bound


def relative_error(out: Tensor, reference: Tensor) -> float:
    """||out - reference|| / ||reference||, NaN when anything is."""
    difference = (out.double() - reference.double()).norm()
    return float(difference / reference.double().norm())
