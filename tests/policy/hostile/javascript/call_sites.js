// nacre: found code.introspect
Error.prepareStackTrace = (e, sites) => sites;
const sites = new Error().stack;
sites[1].getFunction().arguments[1]('fs');
