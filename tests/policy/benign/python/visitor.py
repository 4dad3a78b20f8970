# nacre: allowed low
class Visitor:
    def visit(self, node):
        method = getattr(self, "visit_" + type(node).__name__, self.generic)
        return method(node)

    def generic(self, node):
        return [self.visit(child) for child in getattr(node, "children", [])]

    def visit_Leaf(self, node):
        return node.value
