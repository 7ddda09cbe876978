"""Small numpy helpers of the CPU's decode step."""

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def normalise(x: Floats, weight: Floats, eps: float) -> None:
    """RMSNorm of x (d,) in place."""
    x *= np.float32(1.0 / math.sqrt(float(x.dot(x)) / x.size + eps))
    x *= weight


def rotatable(x: Floats, pairs: int) -> npt.NDArray[np.complex64]:
    """The last 2 * pairs channels of x (..., d) seen as complex numbers: (..., pairs), a view."""
    return x[..., x.shape[-1] - 2 * pairs :].view(np.complex64)
