// The state of one session, and what changes it.
import { signal, batch, effect } from "./vendor/signals.js";
import { ask, get, at, query, parse } from "./api.js";
import { changed, fail, go, refresh } from "./app.js";

export const pageSize = 80; // records in a request
const mostItems = 240; // in the page at a time
const mostLive = 50000; // characters of an answer that arrives

// kept is a signal that survives a reload of the page.
function kept(name, initial) {
  let value = initial;
  try {
    value = JSON.parse(sessionStorage[name]);
  } catch { /* nothing was kept */ }
  const s = signal(value);
  effect(() => {
    try {
      sessionStorage[name] = JSON.stringify(s.value);
    } catch { /* pictures that are too large are not kept */ }
  });
  return s;
}

export const nothing = { text: "", images: [] };

export class Model {
  constructor(id) {
    this.id = id;
    this.info = signal(null);
    this.spent = signal(null); // {usage, lastTurn}
    this.items = signal([]);
    this.first = 0; // the records that the items are from
    this.last = 0;
    this.end = signal(0);
    this.compaction = signal(null); // the compaction in effect
    this.opened = signal(false); // what it covers is shown
    this.goal = 0; // the record to scroll to; Infinity: the end
    this.found = 0; // the one that was
    this.saying = signal(""); // the answer that arrives
    this.thinking = signal("");
    this.recorded = [0, 0]; // how much of both is in records by now
    this.running = signal(false);
    this.calls = signal([]); // that run now
    this.notices = signal([]);
    this.status = signal(""); // for screen readers
    this.question = signal(null);
    this.queue = kept("queue " + id, []);
    this.draft = kept("draft " + id, nothing);
    this.branches = signal(null);
    this.plan = signal(null);
    this.naming = signal(false);
    this.loading = false;
    this.version = signal(0); // grows when records come
  }

  async start(seq) {
    try {
      this.info.value = await get(at(this.id));
      await (seq ? this.around(seq) : this.latest());
      await this.follow();
      this.count();
    } catch (err) {
      fail(err);
    }
  }

  stop() {
    this.stopped = true;
    this.source?.close();
    clearTimeout(this.soon);
  }

  // floor is the first record that is shown.
  floor() {
    const c = this.compaction.value;
    return c && !this.opened.value ? c.first : 1;
  }

  atEnd() {
    return this.last >= this.end.value;
  }

  // put shows items; first and last are the records they are from.
  put(items, first, last, page) {
    batch(() => {
      if (page) {
        this.end.value = Math.max(page.end, this.end.value);
        this.compaction.value = page.compaction;
      }
      const floor = this.floor();
      this.first = Math.max(first, floor);
      this.last = last;
      this.items.value = items.filter((it) => it.seq >= floor);
    });
  }

  page(params) {
    return get(at(this.id, "/transcript" + query({ limit: pageSize, ...params })));
  }

  async latest() {
    const page = await this.page({});
    this.goal = Infinity;
    this.put(page.items, page.first, page.last, page);
  }

  async around(seq) {
    const page = await this.page({ after: Math.max(0, seq - pageSize / 2) });
    if (page.compaction && seq < page.compaction.first) this.opened.value = true;
    this.goal = seq;
    this.put(page.items, page.first, page.last, page);
  }

  // once does one thing that loads records at a time.
  async once(f) {
    if (this.loading) return;
    this.loading = true;
    try {
      await f();
    } catch (err) {
      fail(err);
    } finally {
      this.loading = false;
    }
  }

  earlier() {
    return this.once(async () => {
      let found = 0;
      while (!found && this.first > this.floor()) {
        const page = await this.page({ before: this.first });
        found = page.items.length;
        const all = [...page.items, ...this.items.value];
        const some = all.slice(0, mostItems);
        this.put(some, page.first, some.length < all.length ? some[some.length - 1].seq : this.last, page);
      }
    });
  }

  later() {
    return this.once(async () => {
      let found = 0;
      while (!found && !this.atEnd()) {
        const was = this.last;
        const page = await this.page({ after: this.last });
        found = page.items.length;
        const all = [...this.items.value.filter((it) => it.seq <= was), ...page.items];
        const some = all.slice(-mostItems);
        this.put(some, some.length < all.length ? some[0].seq : this.first, page.last, page);
        if (page.last === was) break; // nothing can be read after it
      }
    });
  }

  // open shows what the compaction in effect covers, or hides it.
  open(on) {
    this.opened.value = on;
    if (on) this.earlier();
    else this.put(this.items.value, this.first, this.last);
  }

  async follow() {
    const s = new EventSource(at(this.id, "/events" + query({ after: this.end.value })));
    this.source = s;
    const on = (type, f) => s.addEventListener(type, (e) => f(parse(e.data)));
    const add = (to, text) => batch(() => {
      to.value = (to.value + text).slice(-mostLive);
      this.runs();
    });
    on("delta", (d) => add(this.saying, d.text));
    on("thinking", (d) => add(this.thinking, d.text));
    on("recorded", (d) => this.came(d.record.seq));
    on("tool", (d) => {
      if (d.state === "running") this.calls.value = [...this.calls.value.filter((c) => c.id !== d.id), d];
      if (d.state === "output") this.calls.value = this.calls.value.map((c) => (c.id === d.id ? { ...c, tail: d.tail, bytes: d.bytes } : c));
      if (d.state === "done") this.calls.value = this.calls.value.filter((c) => c.id !== d.id);
    });
    on("question", (d) => this.asked(d));
    on("answered", (d) => {
      if (this.question.value?.id === d.id) this.question.value = null;
    });
    on("notice", (d) => this.note(d.text));
    on("done", () => this.over());
    s.addEventListener("error", (e) => {
      if (e.data) this.over(parse(e.data).message);
      else if (s.readyState === EventSource.CLOSED && !this.stopped) setTimeout(() => this.follow(), 3000); // else the browser comes back by itself
    });
    s.addEventListener("open", () => this.sync()); // what passed while nobody was here
    await this.sync();
  }

  // sync finds out whether a turn runs, and what it waits for.
  async sync() {
    try {
      const q = await get(at(this.id, "/questions"));
      if (q.running) this.runs();
      else if (this.running.value && !this.sending) await this.over();
      this.asked(q.questions[0] || null);
      if (!q.running && !this.running.value) this.next();
    } catch (err) {
      fail(err);
    }
  }

  runs() {
    if (this.running.value) return;
    this.running.value = true;
    this.status.value = "An answer is coming.";
  }

  asked(q) {
    if (q?.id === this.question.value?.id) return;
    this.question.value = q;
    if (q) this.status.value = "A tool asks for permission.";
  }

  note(text) {
    this.notices.value = [...this.notices.value.slice(-4), text];
  }

  // came hears of a record. It is shown if the end of the session is.
  came(seq) {
    if (this.atEnd()) this.behind = true;
    this.end.value = Math.max(this.end.value, seq);
    this.recorded = [this.saying.value.length, this.thinking.value.length];
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.catchUp(), 30);
  }

  async catchUp() {
    while (this.loading) await new Promise((done) => setTimeout(done, 20));
    const behind = this.behind;
    this.behind = false;
    while (behind && !this.atEnd()) {
      const was = this.last;
      await this.later();
      if (this.last === was) break;
    }
    const recorded = this.recorded;
    batch(() => {
      this.saying.value = this.saying.value.slice(recorded[0]);
      this.thinking.value = this.thinking.value.slice(recorded[1]);
      this.recorded = [0, 0];
      this.version.value++;
    });
  }

  // over ends a turn: problem says why, if it did not come to its end.
  async over(problem) {
    clearTimeout(this.soon);
    await this.catchUp();
    batch(() => {
      this.running.value = false;
      this.saying.value = "";
      this.thinking.value = "";
      this.recorded = [0, 0];
      this.calls.value = [];
      this.question.value = null;
      if (problem) this.note(problem);
      this.status.value = problem ? "" : "The answer is complete.";
    });
    await this.act(async () => {
      this.info.value = await get(at(this.id));
      changed(this.info.value);
    });
    this.count();
    if (!problem) this.next();
    else if (this.queue.value.length) { // they may not fit any more
      const texts = [...this.queue.value.map((x) => x.text), this.draft.value.text].filter(Boolean);
      const images = [...this.queue.value, this.draft.value].flatMap((x) => x.images);
      this.queue.value = [];
      this.draft.value = { text: texts.join("\n\n"), images, focus: true };
    }
  }

  next() {
    const [first, ...rest] = this.queue.value;
    if (!first) return;
    this.queue.value = rest;
    this.say(first);
  }

  count() {
    return this.act(async () => (this.spent.value = await get(at(this.id, "/usage?brief=true"))));
  }

  // say says something; null takes up an interrupted turn.
  async say(what) {
    if (this.running.value) {
      this.queue.value = [...this.queue.value, what];
      return;
    }
    this.runs();
    this.sending = true;
    this.notices.value = [];
    try {
      if (!this.atEnd()) await this.latest();
      this.goal = Infinity;
      const body = what === null ? { continue: true } : { text: what.text, images: what.images.map(({ mime, data }) => ({ mime, data })) };
      const data = await ask("POST", at(this.id, "/turns"), body, { Prefer: "respond-async", "Idempotency-Key": crypto.randomUUID() });
      const where = decodeURIComponent((data.at || "").split("/").pop());
      if (where && where !== this.id) {
        refresh();
        go("s", where); // it goes on in a session of goclaw's own
      }
    } catch (err) {
      this.running.value = false;
      this.status.value = "";
      if (what !== null) this.draft.value = { ...what, focus: true };
      fail(err);
    } finally {
      this.sending = false;
    }
  }

  async act(f) {
    try {
      return await f();
    } catch (err) {
      fail(err);
      return undefined;
    }
  }

  halt() {
    return this.act(() => ask("DELETE", at(this.id, "/turns/current")));
  }

  answer(answer, because) {
    const q = this.question.value;
    this.question.value = null;
    return this.act(() => ask("POST", at(this.id, "/questions/" + q.id), because ? { answer, because } : { answer }));
  }

  rename(title) {
    return this.act(async () => {
      this.info.value = await ask("PATCH", at(this.id), { title });
      changed(this.info.value);
    });
  }

  fork(seq) {
    return this.act(async () => {
      const s = await ask("POST", at(this.id, "/fork"), { at: seq || 0 });
      await refresh();
      go("s", s.id);
    });
  }

  back(seq) {
    return this.act(async () => {
      const r = await ask("POST", at(this.id, "/branches"), { before: seq }, {}, JSON.parse);
      this.draft.value = { text: r.text, images: [], focus: true };
      await this.moved();
    });
  }

  async tree() {
    this.branches.value = (await this.act(() => get(at(this.id, "/branches"))))?.branches ?? null;
  }

  goTo(id) {
    return this.act(async () => {
      await ask("POST", at(this.id, "/branches"), { to: id });
      await this.moved();
      await this.tree();
    });
  }

  async moved() {
    this.info.value = await get(at(this.id));
    changed(this.info.value);
    await this.latest();
    this.version.value++;
  }

  async planCompaction() {
    this.plan.value = (await this.act(() => ask("POST", at(this.id, "/compact"), { dryRun: true }))) ?? null;
  }

  compact(body) {
    return this.act(async () => {
      this.plan.value = null;
      this.status.value = body.undo ? "" : "Compacting the earlier turns.";
      await ask("POST", at(this.id, "/compact"), body);
      this.opened.value = false;
      await this.moved();
      this.count();
      this.status.value = body.undo ? "The compaction was undone." : "The earlier turns were compacted.";
    });
  }
}
