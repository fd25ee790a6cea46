"use strict";
(() => {
  const get = (id) => document.getElementById(id);
  const read = (id) => JSON.parse(get(id).textContent);
  const make = (tag, text = "", properties = {}) =>
    Object.assign(document.createElement(tag), { textContent: text }, properties);
  const SIGNS = { r: "✓", w: "✗", n: "–" }, WORDS = { r: "right", w: "wrong", n: "no verdict" }, MOST = 500;
  const { sets, several } = read("index");
  const formulas = read("formulas");
  const all = [];
  for (const set of sets)
    for (const [id, question, slice, label, states] of set.pairs)
      all.push({ number: all.length, set, id, question, slice, label, states });
  let shown = [], current = null, sample = 0, most = MOST;

  // ---- texts: strings become text nodes; only a formula, which the report made itself, is parsed as markup
  const parsed = new Map();
  function formula(number) {
    if (!parsed.has(number)) {
      const [source, markup] = formulas[number];
      const found = new DOMParser().parseFromString(markup, "text/html").querySelector("math");
      const node = found ? document.importNode(found, true) : make("code", source);
      node.setAttribute("title", source);
      parsed.set(number, node);
    }
    return parsed.get(number).cloneNode(true);
  }
  function text(pieces) {
    const box = make("div", "", { className: "text", tabIndex: 0 });
    for (const piece of pieces) {
      if (typeof piece === "number") box.append(formula(piece));
      else if (typeof piece === "string") box.append(piece);
      else box.append(make("span", `\n${piece[0]}\n`, { className: "gap" }));
    }
    return box;
  }
  const source = (pieces) =>
    (pieces || []).map((one) => (typeof one === "number" ? formulas[one][0] : typeof one === "string" ? one : "")).join("");

  // ---- filters
  const count = (states, letter) => states.split(letter).length - 1;
  const share = (states) => (states.length ? count(states, "r") / states.length : null);
  const chosen = (pair) =>
    get("verifier").value === "" ? pair.states : pair.states.filter((_, v) => pair.set.verifiers[v] === get("verifier").value);
  function spread(pair) {
    const shares = pair.states.map(share).filter((one) => one !== null);
    return shares.length > 1 ? Math.max(...shares) - Math.min(...shares) : 0;
  }
  const TESTS = {
    right: (states) => states.join("").length > 0 && states.every((one) => count(one, "r") === one.length),
    wrong: (states) => states.some((one) => one.includes("w")),
    majority: (states) => states.some((one) => count(one, "w") > one.length / 2),
    missing: (states) => states.some((one) => one.includes("n")),
    differ: (_, pair) => {  // majorities: one is for the label and another is not
      const right = pair.states.filter((one) => one).map((one) => count(one, "r") > one.length / 2);
      return right.includes(true) && right.includes(false);
    },
  };
  function matches(pair, words) {
    const near = `${pair.id}\n${pair.question}\n${pair.slice}`;
    if (near.toLowerCase().includes(words)) return true;
    const document = read(`p${pair.number}`);
    const texts = [document.q, document.p, ...document.v.flat().map((vote) => vote[3])];
    return texts.some((one) => source(one).toLowerCase().includes(words));
  }
  function filter() {
    const [set, label, votes, order] = ["set", "label", "votes", "order"].map((id) => get(id).value);
    const words = get("search").value.trim().toLowerCase();
    shown = all.filter(
      (pair) =>
        (set === "" || pair.set === sets[set]) &&
        (label === "" || String(pair.label) === label) &&
        (get("verifier").value === "" || chosen(pair).some((one) => one)) &&
        (votes === "" || TESTS[votes](chosen(pair), pair)) &&
        (words === "" || matches(pair, words)),
    );
    const size = { wrong: (pair) => count(chosen(pair).join(""), "w") / Math.max(1, chosen(pair).join("").length), differ: spread };
    if (order) {
      const keys = new Map(shown.map((pair) => [pair, size[order](pair)]));
      shown.sort((a, b) => keys.get(b) - keys.get(a) || a.number - b.number);
    }
    most = MOST;
    list();
    if (shown.length && !shown.includes(current)) show(shown[0]);
  }
  function list() {
    get("count").textContent = `${shown.length} of ${all.length} pairs.`;
    get("list").replaceChildren(...shown.slice(0, most).map((pair) => {
      const link = make("a", "", { href: hash(pair, 0, 0) });
      link.append(`${pair.label ? "right" : "wrong"} proof ${pair.id}`);
      link.append(make("small", pair.states.map((one) => one.replace(/./g, (letter) => SIGNS[letter])).join(" | ")));
      link.append(make("small", [several ? pair.set.name : "", pair.slice].filter(Boolean).join(", ")));
      const item = make("li");
      item.append(link);
      return item;
    }));
    if (shown.length > most) {
      const more = make("button", `${shown.length - most} more`, { type: "button" });
      more.onclick = () => { most += MOST; list(); };
      get("list").append(more);
    }
    current && select();
  }
  function select() {
    for (const link of get("list").querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
    const link = get("list").querySelectorAll("a")[shown.indexOf(current)];
    if (link) { link.setAttribute("aria-current", "true"); link.scrollIntoView({ block: "nearest" }); }
  }

  // ---- one pair: #pair/verifier/sample, with the set in front where there are several
  const hash = (pair, verifier, sample) =>
    "#" + [...(several ? [pair.set.name] : []), pair.id, pair.set.verifiers[verifier], sample].map(encodeURIComponent).join("/");
  function show(pair, verifier = 0, wanted = 0, write = true) {
    const document_ = read(`p${pair.number}`);
    current = pair;
    sample = wanted;
    const title = make("h2", `${pair.label ? "Right" : "Wrong"} proof: ${pair.id}`);
    const about = [pair.set.name, `question ${pair.question}`, pair.slice].filter(Boolean).join(", ");
    const inputs = make("div", "", { className: "columns inputs" });
    for (const [name, pieces] of [["Question", document_.q], ["Proof", document_.p]]) {
      const box = make("details", "", { open: true });
      box.append(make("summary", name), pieces.length ? text(pieces) : make("p", "The run does not have it."));
      inputs.append(box);
    }
    const columns = make("div", "", { className: "columns" });
    document_.v.forEach((votes, v) => columns.append(column(pair, votes, v)));
    get("pair").replaceChildren(title, make("p", about), inputs, columns);
    if (write) history.replaceState(null, "", hash(pair, verifier, sample));
    select();
  }
  function column(pair, votes, v) {
    const box = make("section");
    box.append(make("h3", pair.set.verifiers[v]));
    const bar = make("div", "", { className: "votes" });
    const vote = votes.find((one) => one[0] === sample) ?? votes[0];
    votes.forEach((one) => {
      const [number, state, says] = one;
      const link = make("a", `${number} ${SIGNS[state]}`, { href: hash(pair, v, number), className: state });
      link.setAttribute("aria-label", `sample ${number}: ${says}, ${WORDS[state]}`);
      if (one === vote) link.setAttribute("aria-current", "true");
      bar.append(link);
    });
    if (!vote) { box.append(make("p", "It has no vote on this pair.")); return box; }
    const [number, state, says, trace] = vote;
    box.append(bar, make("p", `Sample ${number}: ${says}${state === "n" ? "" : `, ${WORDS[state]}`}`, { className: state }));
    box.append(trace ? text(trace) : make("p", "Its trace is not in this page."));
    return box;
  }
  function follow() {
    let parts = [];
    try { parts = location.hash.slice(1).split("/").map(decodeURIComponent); } catch { /* not an address of this page */ }
    const [name, id, verifier, wanted] = several ? parts : [null, ...parts];
    const pair = all.find((one) => one.id === id && (!several || one.set.name === name));
    if (!pair) return;
    const v = Math.max(0, pair.set.verifiers.indexOf(verifier));
    const inside = get("pair").contains(document.activeElement);
    show(pair, v, Number(wanted) || 0, false);
    if (inside) get("pair").querySelectorAll("section")[v].querySelector("[aria-current]")?.focus();
  }

  // ---- controls
  const option = (value, name) => make("option", name, { value });
  get("set").append(option("", "all"), ...sets.map((set, n) => option(String(n), set.name)));
  const names = [...new Set(sets.flatMap((set) => set.verifiers))];
  get("verifier").append(option("", "any"), ...names.map((name) => option(name, name)));
  let timer;
  const form = document.querySelector("form");
  form.onsubmit = (event) => { event.preventDefault(); filter(); };
  form.onchange = (event) => event.target !== get("search") && filter();
  get("search").oninput = () => { clearTimeout(timer); timer = setTimeout(filter, 300); };
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT)$/.test(event.target.tagName)) { if (event.key === "Escape") event.target.blur(); return; }
    const step = { j: 1, k: -1 }[event.key], turn = { n: 1, p: -1 }[event.key];
    if (step && shown[shown.indexOf(current) + step]) show(shown[shown.indexOf(current) + step]);
    if (turn && current) {
      const numbers = read(`p${current.number}`).v.flat().map((vote) => vote[0]).sort((a, b) => a - b);
      const next = turn > 0 ? numbers.find((one) => one > sample) : numbers.findLast((one) => one < sample);
      if (next !== undefined) show(current, 0, next);
    }
    if (event.key === "/") { event.preventDefault(); get("search").focus(); }
  });
  follow();
  filter();
})();
