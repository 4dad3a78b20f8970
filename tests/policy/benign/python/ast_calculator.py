# nacre: allowed low
"""A calculator without eval()."""
import ast
import operator

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def value(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](value(node.left), value(node.right))
    raise ValueError("not arithmetic")


print(value(ast.parse("2 + 3 * 4", mode="eval").body))
