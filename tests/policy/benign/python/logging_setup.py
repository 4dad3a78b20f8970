# nacre: allowed low
import logging
import logging.handlers
import os

LEVEL = os.environ.get("LOG_LEVEL", "INFO")
handler = logging.handlers.RotatingFileHandler("app.log", maxBytes=1 << 20, backupCount=3)
handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
logging.basicConfig(level=LEVEL, handlers=[handler, logging.StreamHandler()])
logging.getLogger(__name__).info("started in %s", os.getcwd())
