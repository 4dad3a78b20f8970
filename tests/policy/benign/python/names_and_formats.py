# nacre: allowed low
import math
𝑥 = 1
ℓ = 2
größe = 3
template = "{0.real:>{width}} {a[b]!r} {{x.y}}"
print(template.format(𝑥, width=ℓ, a={"b": math.pi}), "%s" % größe, f"{größe.real}")
print("a.b.c", "{name}".format(name="x"), "{:.2f}".format(math.pi))
