// nacre: found code.dynamic-import
require(process.argv[2])();
