/* Buttons and sliders: play, step, speed, heat, time; and the line that says what happens. */

const PLAYS_IN_S = 30;

class Controls {
  /** `act` has toggle(), step(by), seek(time), recolour(lam). */
  constructor(replay, clock, act) {
    this.replay = replay;
    this.clock = clock;
    this.act = act;
    this.lam = replay.data.policy.lambda;
    this.speeds = this._speeds();
    this.node = html("div", "controls");
    this.play = this._button("play", "▶ Play", () => act.toggle());
    const back = this._button("back", "◀ Step", () => act.step(-1));
    const on = this._button("forward", "Step ▶", () => act.step(1));
    back.setAttribute("aria-label", "Step back to the event before");
    on.setAttribute("aria-label", "Step to the next event");
    const buttons = html("div", "buttons");
    buttons.append(this.play, back, on);
    this.speed = this._range("speed", 0, this.speeds.length - 1, 1, this._preset());
    this.heat = this._range("lambda", 0, 1, 0.05, this.lam);
    this.speed.input.addEventListener("input", () => this.label());
    this.heat.input.addEventListener("input", () => {
      this.lam = Number(this.heat.input.value);
      this.label();
      act.recolour();
    });
    this.node.append(buttons, this.speed.wrap, this.heat.wrap);
    this.scrubber = this._scrubber();
    this.status = html("p", "status");
    this.aloud(false);
    this.label();
  }

  /** Times that simulated time runs as fast as the clock. */
  get factor() { return this.speeds[Number(this.speed.input.value)]; }

  /** Whether who listens is told what happens now. */
  aloud(yes) { this.status.setAttribute("aria-live", yes ? "polite" : "off"); }

  playing(yes) {
    setText(this.play, yes ? "❚❚ Pause" : "▶ Play");
    this.play.setAttribute("aria-pressed", String(yes));
  }

  label() {
    const factor = Number(this.factor.toPrecision(3));
    const times = factor.toLocaleString("en", { maximumFractionDigits: 9 });
    setText(this.speed.text, `Speed ${times}× (all in ${duration(this.replay.duration / this.factor)})`);
    this.speed.input.setAttribute("aria-valuetext", `${times} times`);
    const { policy } = this.replay.data;
    const own = policy.orders ? `run: ${policy.eviction}, λ = ${policy.lambda}` : `run: ${policy.eviction}, which has no λ`;
    setText(this.heat.text, `Heat λ = ${this.lam.toFixed(2)} (${own})`);
  }

  draw(time) {
    const share = this.replay.duration > 0 ? time / this.replay.duration : 0;
    if (Math.abs(Number(this.scrub.value) - share) > 1e-12) this.scrub.value = String(share);
    this.scrub.setAttribute("aria-valuetext", this.clock(time));
    for (const end of ["x1", "x2"]) this.timeline.head.setAttribute(end, String(share * BINS));
    setText(this.now, `t = ${this.clock(time)}`);
    const line = this.replay.names.line(time);
    setText(this.status, `t = ${this.clock(time)}${line ? ` · ${line}` : ""}`);
  }

  _button(name, label, act) {
    const button = html("button", `control ${name}`, label);
    button.type = "button";
    button.addEventListener("click", act);
    return button;
  }

  _range(name, min, max, step, value) {
    const wrap = html("label", `slider ${name}`);
    const text = html("span", "slider-text");
    const input = html("input", `${name}-input`);
    Object.assign(input, { type: "range", min, max, step });
    input.value = String(value);
    wrap.append(text, input);
    return { wrap, text, input };
  }

  /** 0.1, 0.2, 0.5, 1 and so on to 1000; further where the window needs that to play in half a minute. */
  _speeds() {
    const wanted = Math.log10(this.replay.duration / PLAYS_IN_S || 1);
    const low = Math.min(-1, Math.floor(wanted) - 1), high = Math.max(3, Math.ceil(wanted) + 1);
    const found = [];
    for (let power = low; power < high; power += 1) for (const one of [1, 2, 5]) found.push(one * 10 ** power);
    return [...found, 10 ** high];
  }

  _preset() {
    const wanted = this.replay.duration / PLAYS_IN_S || 1;
    const far = this.speeds.map((speed) => Math.abs(Math.log(speed / wanted)));
    return far.indexOf(Math.min(...far));
  }

  _scrubber() {
    const box = html("div", "scrubber");
    this.timeline = timeline(this.replay);
    this.scrub = html("input", "scrub");
    Object.assign(this.scrub, { type: "range", min: 0, max: 1, step: "any" });
    this.scrub.value = "0";
    this.scrub.setAttribute("aria-label", "Time");
    this.scrub.addEventListener("input", () => this.act.seek(Number(this.scrub.value) * this.replay.duration));
    const ends = html("div", "scrub-ends");
    this.now = html("span", "now");
    ends.append(html("span", "", this.clock(0)), this.now, html("span", "", this.clock(this.replay.duration)));
    box.append(this.timeline.node, this.scrub, ends);
    return box;
  }
}
