"use strict";
/* The annotations of pictures while they are edited: undo, and saving without loss. No access to the page.

   A picture's annotations are {tags: [text], boxes: [{id, label, x_min, y_min, x_max, y_max}]}. A save sends what the page
   started from (`base`) and what is wanted (`mine`), so that the cloud can merge changes of other people. It may be sent
   again: ids of new boxes are chosen here. */
const annotations = (() => {
  const PAUSE = 300; // milliseconds from a change to its save
  const FIRST = 1000, LONGEST = 15000; // milliseconds between two attempts
  const UNDO = 200;

  const copy = (value) => JSON.parse(JSON.stringify(value));

  function newId() { // crypto.randomUUID is missing on plain HTTP
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const text = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join("-");
  }

  const EDGES = ["x_min", "y_min", "x_max", "y_max"];
  function sameBox(one, other) {
    if (!one || !other) return one === other;
    return one.label === other.label && !one.suggested === !other.suggested && EDGES.every((edge) => Math.abs(one[edge] - other[edge]) < 1e-6);
  }
  const byId = (state) => new Map(state.boxes.map((box) => [box.id, box]));

  function same(one, other) {
    const left = byId(one), right = byId(other);
    return one.tags.length === other.tags.length && one.tags.every((tag) => other.tags.includes(tag))
      && left.size === right.size && [...left].every(([id, box]) => sameBox(box, right.get(id)));
  }

  /* Apply the changes from `before` to `after` to `target`. */
  function rebased(before, after, target) {
    const tags = new Set(target.tags);
    for (const tag of after.tags) if (!before.tags.includes(tag)) tags.add(tag);
    for (const tag of before.tags) if (!after.tags.includes(tag)) tags.delete(tag);
    const old = byId(before), mine = byId(after), boxes = byId(target);
    for (const id of new Set([...old.keys(), ...mine.keys()])) {
      if (sameBox(old.get(id), mine.get(id))) continue;
      if (mine.has(id)) boxes.set(id, mine.get(id)); else boxes.delete(id);
    }
    return { tags: [...tags].sort(), boxes: [...boxes.values()] };
  }

  /* Confirm a box that a model has suggested. */
  const confirmed = (box) => { box.suggested = false; return box; };

  /* One picture. `changed()` is called after each change of `state`, `saving`, `trouble` or `conflict`, and
     `counted(changes)` after a save, with 1 for each label that the picture got and -1 for each that it lost. */
  class Picture {
    constructor(url, state, changed, counted) {
      this.url = url;
      this.base = copy(state); // as stored, as far as this page knows
      this.state = copy(state);
      this.changed = changed;
      this.counted = counted;
      this.done = []; // states to return to
      this.undone = [];
      this.saving = false;
      this.trouble = ""; // why the last attempt failed
      this.conflict = null; // {annotations, conflicts}: a person must decide
      this.retryAt = 0;
      this.wait = FIRST;
      this.timer = 0;
      this.confirm = false; // to be saved although nothing has changed
    }

    get saved() { return !this.saving && !this.confirm && same(this.base, this.state); }

    /* Change the state: `edit` gets a copy. With `join`, the change is undone together with the one before. */
    change(edit, join = false) {
      const next = copy(this.state);
      edit(next);
      if (same(next, this.state)) return;
      if (!join) { this.done.push(this.state); if (this.done.length > UNDO) this.done.shift(); }
      this.undone = [];
      this.state = next;
      this.later();
    }

    undo() { this.step(this.done, this.undone); }
    redo() { this.step(this.undone, this.done); }
    step(from, to) {
      if (!from.length) return;
      to.push(this.state);
      this.state = from.pop();
      this.later();
    }

    /* Record that a person has looked at the labels. */
    right(tags = []) {
      this.confirm = true;
      this.change((state) => {
        state.boxes.forEach(confirmed);
        if (!state.tags.length) state.tags.push(...tags);
      });
      this.later(0);
    }

    /* Save soon. */
    later(pause = PAUSE) {
      clearTimeout(this.timer);
      this.retryAt = 0;
      this.timer = setTimeout(() => this.save(), pause);
      this.changed();
    }

    async save() {
      clearTimeout(this.timer);
      if (this.saving || this.conflict || this.saved) { this.changed(); return; }
      const sent = copy(this.state);
      this.saving = true;
      this.confirm = false;
      this.trouble = "";
      this.changed();
      let response = null, answer = {};
      try {
        response = await fetch(this.url, {
          method: "POST",
          headers: { "content-type": "application/json", accept: "application/json" },
          body: JSON.stringify({ base: this.base, mine: sent }),
        });
        answer = await response.json();
      } catch (error) {
        if (!response || response.ok) response = null; // no answer, or half of one
      }
      this.saving = false;
      if (response && response.ok) {
        this.counted(answer.changed);
        this.accept(sent, answer.annotations);
      }
      else if (response && response.status === 409 && answer.conflicts) this.conflict = answer;
      else this.failed(response, answer.error);
      this.changed();
    }

    accept(sent, stored) {
      this.wait = FIRST;
      this.state = rebased(sent, this.state, stored);
      this.base = copy(stored);
      if (!this.saved) this.later();
    }

    /* Without an answer, or if the cloud is busy, try again by itself; otherwise a person must. */
    failed(response, reason) {
      const status = response ? response.status : 0;
      if (status === 401) this.trouble = "You are logged out. Log in again in another tab, then save again.";
      else if (status && status < 500 && status !== 429) this.trouble = reason || `The cloud answered ${status}.`;
      else {
        this.trouble = reason || "The cloud does not answer.";
        this.retryAt = Date.now() + this.wait;
        this.timer = setTimeout(() => this.save(), this.wait);
        this.wait = Math.min(this.wait * 2, LONGEST);
      }
    }

    /* Decide a conflict: keep one's own changes, or those of the other person for the boxes in question. */
    decide(mine) {
      const { annotations: stored, conflicts } = this.conflict;
      let wanted = rebased(this.base, this.state, stored);
      if (!mine) {
        const theirs = byId(stored);
        wanted.boxes = wanted.boxes.filter((box) => !conflicts.includes(box.id));
        for (const id of conflicts) if (theirs.has(id)) wanted.boxes.push(theirs.get(id));
      }
      this.conflict = null;
      this.base = copy(stored);
      this.state = copy(wanted);
      this.later(0);
    }
  }

  return { Picture, newId, same, confirmed };
})();
