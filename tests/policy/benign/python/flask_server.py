# nacre: allowed low
from flask import Flask, jsonify, request

app = Flask(__name__)
users = {}


@app.route("/users/<name>", methods=["GET", "PUT"])
def user(name):
    if request.method == "PUT":
        users[name] = request.get_json()
    return jsonify(users.get(name, {}))


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=8000)
