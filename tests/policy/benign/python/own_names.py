# nacre: allowed low
# functions of its own with names of dangerous ones, in a class and as parameters
class Shell:
    def system(self, command):
        return f"pretend: {command}"

    def exec(self, sql):
        return sql


def apply(eval, value):
    return eval(value)


shell = Shell()
print(shell.system("rm -rf /tmp/x"), shell.exec("SELECT 1"), apply(str, 1))
