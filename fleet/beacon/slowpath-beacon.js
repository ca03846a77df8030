// Sends one beacon a page view to `slowpath fleet`'s format (docs/fleet.md): Navigation Timing, Paint Timing, and what
// the page says of itself. Include it in a page, with the address that collects beacons:
//
//   <script src="slowpath-beacon.js" data-endpoint="/beacon" data-user="PSEUDONYM" data-version="4.2" async></script>
//
// Every further `data-` attribute becomes a column; data-delay is the wait after `load` in ms (2000). Without data-user a random name is kept in localStorage;
// data-user="" sends none. Nothing is read of the page, no cookie is set.
(() => {
    "use strict";
    const given = { ...document.currentScript.dataset };
    const { endpoint } = given;
    const delay = Number(given.delay ?? 2000);
    delete given.endpoint;
    delete given.delay;

    function user() {
        try {
            const key = "slowpath-beacon-user";
            const known = localStorage.getItem(key) || crypto.randomUUID();
            localStorage.setItem(key, known);
            return known;
        } catch {
            // Storage is off: launches of this visitor count without a user.
            return "";
        }
    }

    // Milestones of the page view, in ms since its start; one that did not happen is not sent.
    function metrics(navigation) {
        const paints = Object.fromEntries(performance.getEntriesByType("paint").map((one) => [one.name, one.startTime]));
        const found = {
            response_start: navigation.responseStart,
            dom_interactive: navigation.domInteractive,
            dom_content_loaded: navigation.domContentLoadedEventEnd,
            load: navigation.loadEventEnd,
            first_paint: paints["first-paint"],
            first_contentful_paint: paints["first-contentful-paint"],
        };
        return Object.fromEntries(Object.entries(found).filter(([, value]) => value > 0));
    }

    let sent = false;
    function send() {
        const navigation = performance.getEntriesByType("navigation")[0];
        if (sent || !navigation || !endpoint) return;
        sent = true;
        const beacon = {
            schema: "slowpath-beacon/1",
            time: performance.timeOrigin,
            user: given.user ?? user(),
            navigation: navigation.type,
            start: navigation.activationStart > 0 ? "prerendered" : "page",
            network: navigator.connection?.effectiveType,
            robot: navigator.webdriver === true,
            ...given,
            metrics: metrics(navigation),
        };
        if (!beacon.user) delete beacon.user;
        navigator.sendBeacon(endpoint, JSON.stringify(beacon));
    }

    // A view that has painted nothing by then is a slow one, and without its paint the slowest would be left out.
    function sendWhenPainted() {
        const isPainted = () => performance.getEntriesByName("first-contentful-paint").length > 0;
        const isTold = globalThis.PerformanceObserver?.supportedEntryTypes?.includes("paint");
        if (isPainted() || !isTold || document.visibilityState === "hidden") send();
        else new PerformanceObserver(() => isPainted() && send()).observe({ type: "paint", buffered: true });
    }

    // Paints can come after `load`, and many pages are left before it: sent is after the delay and the paint, or when the
    // page is hidden, whichever is first.
    addEventListener("visibilitychange", () => document.visibilityState === "hidden" && send());
    addEventListener("pagehide", send);
    const later = () => setTimeout(sendWhenPainted, delay);
    if (document.readyState === "complete") later();
    else addEventListener("load", later);
})();
