# nacre: allowed low
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "not-a-secret"
DEBUG = True
ALLOWED_HOSTS = ["localhost"]
INSTALLED_APPS = ["django.contrib.admin", "django.contrib.auth"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
STATIC_URL = "/static/"
