// A player for the steps of a forward and a backward pass. Python gives one picture, and for each frame what it is
// about; here parts of the picture become faint, normal or strong. See viz/steps.py for the data.

const SECONDS = 1.8
const READABLE = 1  // pixels of the screen for a point of the picture; a wider picture is scrolled

/** Build a player in an element. Returns a function that shows a frame; `moved` is told of each new frame. */
function play(root, data, moved) {
    const last = data.frames.length - 1
    let now = -1
    let timer = 0

    root.classList.add("needle-steps")
    for (const [name, colour] of Object.entries(data.colours)) root.style.setProperty(`--${name}`, colour)
    root.tabIndex = 0
    root.setAttribute("role", "group")
    root.setAttribute("aria-label", data.title)
    root.innerHTML = `
        <div class="bar">
            <button data-do="first" title="First frame (Home)" aria-label="First frame">|◀</button>
            <button data-do="back" title="Back (←)" aria-label="Back">◀</button>
            <button data-do="play" title="Play (space)" aria-label="Play">▶ Play</button>
            <button data-do="next" title="Next (→)" aria-label="Next">▶</button>
            <button data-do="last" title="Last frame (End)" aria-label="Last frame">▶|</button>
            <input type="range" min="0" max="${last}" value="0" aria-label="Frame">
            <span class="count"></span>
            <label>Speed <select aria-label="Speed">
                <option value="0.5">½×</option><option value="1" selected>1×</option>
                <option value="2">2×</option><option value="4">4×</option>
            </select></label>
        </div>
        <div class="now" aria-live="polite"><div class="title"></div><div class="equations"></div></div>
        <div class="picture">${data.svg}</div>
        <ol class="order" aria-label="Topological order"></ol>`
    const find = (selector) => root.querySelector(selector)
    const slider = find("input")
    const lines = Math.max(...data.frames.map(({equations}) => equations.length))
    find(".now").style.minHeight = `${20 + 24 * lines}px`  // the picture stays where it is
    const svg = find("svg")
    svg.style.minWidth = `${READABLE * svg.viewBox.baseVal.width}px`
    const parts = [...root.querySelectorAll("svg [data-key]:not(.cluster)")].map((part) => {
        const key = part.dataset.key
        return {part, key, since: since(key, data.since), edge: key.includes("->")}
    })
    const names = data.order.map((name) => {
        const item = document.createElement("li")
        item.textContent = name
        find(".order").append(item)
        return item
    })

    function show(frame) {
        frame = Math.min(Math.max(frame, 0), last)
        if (frame === now) return
        now = frame
        const {phase, title, equations, place, key, marked} = data.frames[frame]
        root.dataset.phase = phase
        for (const {part, key: own, since, edge} of parts) {
            part.classList.toggle("ahead", since > frame)
            part.classList.toggle("fresh", edge && since === frame)
            part.classList.toggle("current", own === key || own === `${key}_op` && since <= frame)
            part.classList.toggle("marked", marked.includes(own))
        }
        find(".title").textContent = title
        find(".equations").replaceChildren(...equations.map((text) => {
            const line = document.createElement("div")
            line.textContent = text
            return line
        }))
        slider.value = frame
        slider.setAttribute("aria-valuetext", title)
        find(".count").textContent = `${frame + 1} / ${last + 1}`
        names.forEach((item, i) => {
            item.classList.toggle("current", i === place)
            item.classList.toggle("done", phase === "forward" ? i < place : i > place)
        })
        const list = find(".order")
        follow(find("svg .node.current"))
        list.scrollTop = names[place].offsetTop - list.clientHeight / 2
        for (const name of ["first", "back"]) find(`[data-do=${name}]`).disabled = frame === 0
        for (const name of ["next", "last"]) find(`[data-do=${name}]`).disabled = frame === last
        moved(frame)
    }

    /** Scroll a wide picture to the current node. */
    function follow(node) {
        const frame = find(".picture")
        if (!node || frame.scrollWidth <= frame.clientWidth) return
        const [inner, outer] = [node.getBoundingClientRect(), frame.getBoundingClientRect()]
        const still = matchMedia("(prefers-reduced-motion: reduce)").matches
        const way = inner.left + inner.width / 2 - outer.left - outer.width / 2
        const far = Math.abs(way) > frame.clientWidth
        frame.scrollTo({left: frame.scrollLeft + way, behavior: still || far ? "auto" : "smooth"})
    }

    function start() {
        if (now === last) show(0)
        timer = setInterval(() => {
            if (now < last && root.isConnected) show(now + 1)
            else stop()
        }, 1000 * SECONDS / find("select").value)
        label("❚❚ Pause")
    }

    function stop() {
        clearInterval(timer)
        timer = 0
        label("▶ Play")
    }

    function label(text) {
        const button = find("[data-do=play]")
        button.textContent = text
        button.setAttribute("aria-label", text.split(" ")[1])
    }

    const actions = {
        first: () => show(0),
        back: () => show(now - 1),
        next: () => show(now + 1),
        last: () => show(last),
        play: () => timer ? stop() : start(),
    }
    const keys = {Home: "first", ArrowLeft: "back", ArrowRight: "next", End: "last", " ": "play"}

    function act(name) {
        if (name !== "play") stop()
        actions[name]()
    }

    root.addEventListener("click", (event) => {
        const button = event.target.closest("[data-do]")
        if (button) return act(button.dataset.do)
        const node = event.target.closest("svg .node")
        if (!node) return
        const frame = data.frames.findIndex(({key}) => key === node.dataset.key)
        stop()
        show(frame < 0 ? since(node.dataset.key, data.since) : frame)
    })
    root.addEventListener("keydown", (event) => {
        const name = keys[event.key]
        const pressed = event.key === " " && event.target.closest("button")  // the button does what it says
        if (!name || pressed || event.target.closest("select") || event.altKey || event.ctrlKey || event.metaKey) return
        event.preventDefault()
        event.stopPropagation()
        act(name)
        if (document.activeElement?.disabled) root.focus()
    })
    slider.addEventListener("input", () => {
        stop()
        show(slider.valueAsNumber)
    })
    find("select").addEventListener("change", () => {
        if (!timer) return
        stop()
        start()
    })

    show(0)
    return {show, stop}
}

/** The frame in which a part of the picture appears; an edge appears with the later one of its ends. */
function since(key, known) {
    const own = (end) => known[end.replace(/_op$/, "").replace(/^.*_for_/, "")] ?? 0
    return Math.max(...key.split("->").map(own))
}

/** Bring all players of a page to life that are not yet. */
function playAll(page) {
    for (const root of page.querySelectorAll("[data-needle-steps]")) {
        const data = JSON.parse(root.dataset.needleSteps)
        delete root.dataset.needleSteps
        play(root, data, () => {})
    }
}

// As a widget: the frame is shared with Python.
function render({model, el}) {
    const root = document.createElement("div")
    root.dataset.lmSuppressShortcuts = "true"
    el.append(root)
    const first = model.get("frame")
    let ready = false
    const player = play(root, model.get("data"), (frame) => {
        if (!ready || frame === model.get("frame")) return
        model.set("frame", frame)
        model.save_changes()
    })
    player.show(first)
    ready = true
    const follow = () => player.show(model.get("frame"))
    model.on("change:frame", follow)
    return () => {
        player.stop()
        model.off("change:frame", follow)
    }
}

export default {render}
