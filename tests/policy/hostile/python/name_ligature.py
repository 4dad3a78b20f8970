# nacre: found code.hidden-name code.introspect
import sys
print(sys._getﬀrame, (lambda: 0).__gloᵇals__)
