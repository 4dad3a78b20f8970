# nacre: allowed low
"""Least squares with numpy; see /etc/passwd for nothing at all."""
import numpy as np


def fit(x, y):
    a = np.vstack([x, np.ones(len(x))]).T
    slope, intercept = np.linalg.lstsq(a, y, rcond=None)[0]
    return slope, intercept


rng = np.random.default_rng(0)
x = rng.normal(size=100)
y = 3 * x + rng.normal(scale=0.1, size=100)
print("slope %.3f, intercept %.3f" % fit(x, y))
