// Requests to the server, and what follows from them.

// Characters that hide, or that change the direction of what comes after them.
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

export const clean = (text) => text.replace(hidden, "\ufffd");

// parse reads JSON. Nothing in its texts is hidden: the page shows them as they are.
export const parse = (text) => JSON.parse(text, (_, v) => (typeof v === "string" ? clean(v) : v));

// ask sends a request and returns the answer's JSON; a problem is thrown.
export async function ask(method, path, body, headers = {}, read = parse) {
  const resp = await fetch(path, {
    method,
    headers: body === undefined ? headers : { "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (resp.status === 204) return null;
  let data = null;
  try {
    data = read(await resp.text());
  } catch { /* not JSON: the status says enough */ }
  if (!resp.ok) throw new Error(data?.detail || data?.title || `the server answered ${resp.status}`);
  if (data && typeof data === "object") Object.defineProperty(data, "at", { value: resp.headers.get("Content-Location") }); // where it goes on
  return data;
}

export const get = (path) => ask("GET", path);

// at returns the path of a session.
export const at = (id, rest = "") => `/v1/sessions/${encodeURIComponent(id)}${rest}`;

// query writes parameters; empty ones are left out.
export function query(params) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== "" && v !== undefined && v !== null) q.set(k, v);
  const s = q.toString();
  return s ? "?" + s : "";
}

// trusted marks HTML that the server rendered: no other HTML reaches the page.
const policy = window.trustedTypes
  ? window.trustedTypes.createPolicy("goclaw", { createHTML: (s) => s })
  : { createHTML: (s) => s };
export const trusted = (html) => ({ __html: policy.createHTML(html) });

// short writes a number of tokens.
export function short(n) {
  if (n >= 1e6) return (n / 1e6).toFixed(1) + "M";
  if (n >= 1e4) return Math.round(n / 1e3) + "k";
  if (n >= 1e3) return (n / 1e3).toFixed(1) + "k";
  return String(n);
}

export const dollars = (n) => (n ? "$" + n.toFixed(n < 0.01 ? 4 : n < 0.1 ? 3 : 2) : "");

// ago says how long ago a time was.
export function ago(time) {
  const s = (Date.now() - new Date(time)) / 1000;
  if (!(s >= 0)) return "";
  for (const [n, unit] of [[86400 * 365, "y"], [86400 * 30, "mo"], [86400, "d"], [3600, "h"], [60, "min"]]) {
    if (s >= n) return Math.floor(s / n) + " " + unit;
  }
  return "now";
}

export const clock = (time) => (time ? new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" }) : "");
