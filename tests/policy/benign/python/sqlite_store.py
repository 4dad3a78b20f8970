# nacre: allowed low
import contextlib
import sqlite3

with contextlib.closing(sqlite3.connect("notes.db")) as database:
    with database:
        database.execute("CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, text TEXT)")
        database.execute("INSERT INTO note (text) VALUES (?)", ("hello",))
    for row in database.execute("SELECT * FROM note"):
        print(row)
