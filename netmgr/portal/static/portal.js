// Makes the page comfortable: it works without this script. Shows the password on request, and keeps the list current.
"use strict";

const PERIOD = 5000; // milliseconds between two looks at the device, while the page is visible

const reveal = document.querySelector("#reveal");
const password = document.querySelector("#password");
if (reveal && password) {
  reveal.hidden = false;
  reveal.querySelector("input").addEventListener("change", (event) => {
    password.type = event.target.checked ? "text" : "password";
  });
}

function row(network, chosen) {
  const label = document.createElement("label");
  label.className = "network";
  const input = Object.assign(document.createElement("input"), {
    type: "radio", name: "network", value: network.id, checked: network.id === chosen,
    disabled: network.needs.includes("not supported") || network.needs === "account",
  });
  const name = Object.assign(document.createElement("span"), { className: "name", textContent: network.name });
  if (network.error) {
    name.append(Object.assign(document.createElement("span"), { className: "small failed", textContent: network.error }));
  }
  const facts = Object.assign(document.createElement("span"), {
    className: "small muted facts", textContent: `${network.needs}, ${network.percent} %`,
  });
  label.append(input, name, facts);
  return label;
}

function update(state) {
  const list = document.querySelector("#networks");
  const chosen = list.querySelector("input:checked")?.value;
  const focused = list.contains(document.activeElement) ? document.activeElement.value : null;
  list.replaceChildren(...state.networks.map((network) => row(network, chosen)));
  if (focused) list.querySelector(`input[value="${CSS.escape(focused)}"]`)?.focus();
  document.querySelector("#empty")?.toggleAttribute("hidden", state.networks.length > 0);
  const scanned = document.querySelector("#scanned");
  if (scanned && state.scanned !== null) scanned.textContent = Math.round(state.scanned);
  document.querySelector("#next").textContent = state.next;
}

async function look() {
  if (!document.hidden) {
    try {
      const answer = await fetch("/state", { cache: "no-store" });
      if (answer.ok) update(await answer.json());
    } catch {
      // The hotspot has ended or is out of reach: the next look may succeed.
    }
  }
  setTimeout(look, PERIOD);
}

if (document.querySelector("#networks")) setTimeout(look, PERIOD);
