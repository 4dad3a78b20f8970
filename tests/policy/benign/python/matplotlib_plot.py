# nacre: allowed low
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

t = np.linspace(0, 2 * np.pi, 200)
figure, axes = plt.subplots()
axes.plot(t, np.sin(t), label="sin")
axes.plot(t, np.cos(t), label="cos")
axes.legend()
figure.savefig("/tmp/waves.png", dpi=150)
