import json
import re
from difflib import get_close_matches
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def call(name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"function": function}]}


class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["messages"][-1]["content"].lower()
        words = re.findall(r"\w+", text)
        days = [day for word in words for day in get_close_matches(word, DAYS, n=1, cutoff=0.65)]
        day = days[0] if days else "today"
        people = int((re.findall(r"\d+", text) or ["2"])[0])
        if "cancel" in text:
            message = call("cancel_booking", day=day)
        else:
            message = call("book_table", people=people, day=day)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(message).encode())


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", 8765), Agent).serve_forever()
