// nacre: found code.introspect
function g() {
  return g.caller.arguments[1];
}
g()('fs');
