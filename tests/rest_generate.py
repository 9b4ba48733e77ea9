"""rest_generate.py SOCKET SEED N: asks a scheduler over its Unix socket what its own schema allows, and what
it forbids.

Requests are made up from GET /v1/schema alone. Checked of each answer: no 5xx; 200 fits the answer's schema;
anything else is the error object; what breaks the schema in one place is refused with a 4xx that says why;
and whatever was forbidden, the jobs are those of before. The last line counts. /v1/stop and the stream are
left out; so are numbers for Prometheus, and a policy's name, which the schema knows as text only."""
import http.client, json, random, socket, sys

path, seed, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)

class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(path)

def ask(method, target, body=None):
    c = Unix("localhost")
    text = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try: c.request(method, target, text, {"Content-Type": "application/json"} if text else {})
    except BrokenPipeError:                         # refused by its head: the answer is there
        c._HTTPConnection__state = "Request-sent"
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, json.loads(data)

TYPES = {"integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
         "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
         "string": lambda v: isinstance(v, str), "boolean": lambda v: isinstance(v, bool),
         "array": lambda v: isinstance(v, list), "object": lambda v: isinstance(v, dict)}

def misfit(schema, v, at="answer"):
    """Why v is not what the schema says; None: it is."""
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    if types and not any(TYPES[t](v) for t in types):
        return "%s is %r, not %s" % (at, v, types)
    if isinstance(v, dict):
        for name in schema.get("required", []):
            if name not in v: return "%s lacks %s" % (at, name)
        named = schema.get("properties", {})
        for name, item in v.items():
            inner = named.get(name, schema.get("additionalProperties", not named))
            if inner is False: return "%s has %s, which the schema does not name" % (at, name)
            if inner is not True and (why := misfit(inner, item, at + "." + name)): return why
    if isinstance(v, list) and "items" in schema:
        for i, item in enumerate(v):
            if why := misfit(schema["items"], item, "%s[%d]" % (at, i)): return why
    return None

JOB = """job: {name: made-up, steps: 2}
model: {use: "builtin:mlp", args: {input: [1, 4, 4], hidden: [4], classes: 2}}
data: {kind: synthetic, count: 8}
batch: {global: 4, virtual_nodes: 2}
"""
KNOWN = {"job": lambda: draw.choice([JOB, "job: {", "\u00e9" * 50]),
         "folder": lambda: draw.choice(["/tmp", "relative"]),
         "set": lambda: [draw.choice(["optim.lr=0.5", "x"])]}

def good(name, schema):
    types = schema.get("type")
    kind = draw.choice(types) if isinstance(types, list) else types
    low, high = schema.get("minimum", 0), schema.get("maximum", 1000)
    long = kind in ("string", "array") and schema.get("maxLength", 0) > 64
    if name in KNOWN and long or name == "set": return KNOWN[name]()
    if kind == "integer":
        return draw.choice([int(low), int(high), draw.randint(int(low), int(min(high, low + 50)))])
    if kind == "number" or (types == ["number", "string"]):
        return draw.choice([low, high, draw.uniform(low, high)])
    if kind == "boolean": return draw.random() < 0.5
    if kind == "array": return [good(name, schema["items"]) for _ in range(draw.randint(0, 3))]
    if kind == "object":
        inner = schema["additionalProperties"]
        return {draw.choice(["a", "b", "fast"]): good("", inner) for _ in range(draw.randint(0, 2))}
    most = min(schema.get("maxLength", 12), 64)
    return "".join(draw.choice("abcxyz019._-") for _ in range(draw.randint(1, most)))

def bad(name, schema):
    """A value that the schema forbids."""
    ways = [None, {"x": 1} if schema.get("type") != "object" else [1]]
    types = schema.get("type") if isinstance(schema.get("type"), list) else [schema.get("type")]
    if "boolean" not in types: ways.append(True)
    if "string" not in types: ways.append("text")
    if "integer" not in types and "number" not in types: ways.append(1.5)
    if types == ["integer"]: ways += [1.5, 1e300]
    if "maximum" in schema and ("string" not in types or types == ["number", "string"]):
        ways += [schema["maximum"] + 1, schema["minimum"] - 1]
    if "maxLength" in schema and types == ["string"]: ways += ["", "x" * (schema["maxLength"] + 1)]
    return draw.choice(ways)

status, document = ask("GET", "/v1/schema")
assert status == 200 and document["openapi"] == "3.1.0", status
routes = [(m, p, r) for p, item in sorted(document["paths"].items()) for m, r in sorted(item.items())
          if p not in ("/v1/stop", "/v1/events", "/metrics") and not (p == "/v1/policy" and m == "post")]
counts, cancelled = {}, set()

def orders():
    """What only a request changes of the jobs: meanwhile those that run come to their ends."""
    total, after = [], 0
    while True:
        status, page = ask("GET", "/v1/jobs?limit=1000&after=%d" % after)
        assert status == 200, page
        for j in page["jobs"]:
            total.append((j["id"], j["priority"], j["state"] == "cancelled" and j["id"] not in cancelled))
        if not page["more"]: return total
        after = page["jobs"][-1]["id"]

def query_text(v): return "true" if v is True else "false" if v is False else str(v)

def make(route, method, target, spoil):
    """A request by the schema; with spoil one thing of it is wrong. Returns method, target, body, what is
    wrong (None: cannot be spoilt)."""
    params = route.get("parameters", [])
    body_schema = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    query, wrong = [], None
    for p in params:
        named = p["name"] == "job" and p["in"] == "path"
        v = draw.choice([1, 2, "made-up", "no-one"]) if named else good(p["name"], p["schema"])
        if p["in"] == "path": target = target.replace("{%s}" % p["name"], str(v))
        elif draw.random() < 0.5: query.append((p["name"], query_text(v)))
    body = None if method == "get" else {}
    if body_schema:
        for name, s in body_schema["properties"].items():
            if name in body_schema["required"] or draw.random() < 0.3: body[name] = good(name, s)
    if not spoil: return target + ("?" + "&".join("%s=%s" % q for q in query) if query else ""), body, ""
    ways = ["unknown"]
    if body_schema and body_schema["required"]: ways.append("missing")
    if body_schema and body_schema["properties"]: ways += ["value"] * 4
    if method == "get": ways.append("body")
    else: ways += ["not JSON", "not an object"]
    way = draw.choice(ways)
    if way == "unknown":
        if method == "get": query.append(("no_such_member", "1"))
        else: body["no_such_member"] = 1
    elif way == "missing": del body[draw.choice(body_schema["required"])]
    elif way == "value":
        name = draw.choice(sorted(body_schema["properties"]))
        body[name] = bad(name, body_schema["properties"][name])
    elif way == "body": body = {"a": 1}
    elif way == "not JSON": body = draw.choice([b"{", b"nonsense", b"\xff\xfe", b"{\"a\":1}{}"])
    elif way == "not an object": body = draw.choice([[1], [{}]])
    return target + ("?" + "&".join("%s=%s" % q for q in query) if query else ""), body, way

for i in range(n):
    method, pattern, route = draw.choice(routes)
    spoil = draw.random() < 0.5
    target, body, way = make(route, method, pattern, spoil)
    if spoil and i % 7 == 0: before = orders()
    status, answer = ask(method.upper(), target, body)
    said = "%s %s %r -> %d %r" % (method, target, body, status, answer if status != 200 else "")
    assert status < 500 or status == 507, said
    if status == 200:
        assert not spoil, "taken, though %s: %s" % (way, said)
        why = misfit(route["responses"]["200"]["content"]["application/json"]["schema"], answer)
        assert not why, "%s: %s" % (why, said)
        if pattern.endswith("/cancel"): cancelled.add(answer["id"])
    else:
        why = misfit(route["responses"]["default"]["content"]["application/json"]["schema"], answer)
        assert not why and answer["error"], "%s: %s" % (why, said)
        if spoil: assert status in (400, 404, 405, 413, 415), said
    if spoil and i % 7 == 0: assert orders() == before, "changed by what was refused: " + said
    counts[status] = counts.get(status, 0) + 1
print("%d requests of seed %d:" % (n, seed), ", ".join("%d %d" % c for c in sorted(counts.items())))
assert counts.get(200, 0) > n // 10 and counts.get(400, 0) > n // 10, "too few of a kind to show anything"
