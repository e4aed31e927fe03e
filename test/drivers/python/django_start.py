# SPDX-License-Identifier: ISC
"""What the programs with Django share: its start, with the database that libpq's variables name."""

import os

import django
from django.conf import settings


def start(applications, database=(), **more):
    """Configure Django with these applications, besides users, and set it up. `database` has more keys
    of the database; the other arguments are further settings."""
    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": os.environ["PGDATABASE"],
                "USER": os.environ["PGUSER"],
                "PASSWORD": os.environ["PGPASSWORD"],
                "HOST": os.environ["PGHOST"],
                "PORT": os.environ["PGPORT"],
                "CONN_MAX_AGE": None,
                **dict(database),
            }
        },
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", *applications],
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        **more,
    )
    django.setup()
