//! The bot score of a join (HOL-39): a sum of weighted signals, 0 to 100. Signals that people behind
//! one address share stay together below [`ENFORCE_AT`], so an office is never refused for what one
//! of it does. The host gathers the facts; a room's protection mode decides what the score means.

/// From this score on, protection in mode `enforce` refuses a join.
pub const ENFORCE_AT: u8 = 60;

/// What spoke against a request being a browser's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// The user agent names an automation tool.
    pub declared_automation: bool,
    /// There is no user agent.
    pub no_user_agent: bool,
    /// There is no `Accept-Language`.
    pub no_accept_language: bool,
    /// There is no `Accept`, or only `*/*` on a navigation.
    pub bare_accept: bool,
    /// The named browser always sends `Sec-Fetch-*`, and they are missing.
    pub missing_sec_fetch: bool,
    /// There are more forwarding entries than trusted proxies.
    pub forged_forwarding: bool,
    /// The address joins as regularly as a machine.
    pub regular_cadence: bool,
}

impl Signals {
    /// Each signal's name in reports, its weight and whether it is set.
    fn table(&self) -> [(&'static str, u8, bool); 7] {
        [
            ("declared_automation", 40, self.declared_automation),
            ("no_user_agent", 30, self.no_user_agent),
            ("no_accept_language", 10, self.no_accept_language),
            ("bare_accept", 5, self.bare_accept),
            ("missing_sec_fetch", 15, self.missing_sec_fetch),
            ("forged_forwarding", 15, self.forged_forwarding),
            ("regular_cadence", 20, self.regular_cadence),
        ]
    }

    /// The names of the signals that are set, heaviest kinds first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.table().into_iter().filter(|(_, _, set)| *set).map(|(name, _, _)| name)
    }
}

/// The score of a request, 0 to 100.
#[must_use]
pub fn score(signals: &Signals) -> u8 {
    let weights =
        signals.table().into_iter().filter(|(_, _, set)| *set).map(|(_, weight, _)| weight);
    weights.fold(0, u8::saturating_add).min(100)
}

/// What a host knows about a joining request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'a> {
    /// `User-Agent`.
    pub user_agent: Option<&'a str>,
    /// `Accept-Language`.
    pub accept_language: Option<&'a str>,
    /// `Accept`.
    pub accept: Option<&'a str>,
    /// Whether any `Sec-Fetch-*` came. Browsers send them to https and loopback addresses only, so
    /// the host says true for a request over plain http.
    pub has_sec_fetch: bool,
    /// Whether the request loads a page, as opposed to one a page's script makes.
    pub is_navigation: bool,
    /// How many entries `X-Forwarded-For` has.
    pub forwarded_entries: usize,
    /// How many of them our own proxies account for.
    pub trusted_proxies: usize,
    /// Whether the address joins as regularly as a machine.
    pub regular_cadence: bool,
}

/// The signals in the facts.
#[must_use]
pub fn signals_of(facts: &RequestFacts<'_>) -> Signals {
    let text = |value: Option<&'_ str>| value.map_or("", str::trim).len();
    let agent = facts.user_agent.unwrap_or_default();
    // A bound for the searches below; what counts stands at the front.
    let agent = agent.get(..agent.floor_char_boundary(512)).unwrap_or_default();
    let accept = facts.accept.map_or("", str::trim);
    Signals {
        declared_automation: declares_automation(agent),
        no_user_agent: text(facts.user_agent) == 0,
        no_accept_language: text(facts.accept_language) == 0,
        bare_accept: accept.is_empty() || (facts.is_navigation && accept == "*/*"),
        missing_sec_fetch: !facts.has_sec_fetch && always_sends_sec_fetch(agent),
        forged_forwarding: facts.forwarded_entries > facts.trusted_proxies,
        regular_cadence: facts.regular_cadence,
    }
}

/// Names tools give themselves, in lower case. Crawlers declare themselves by `bot` at a word's end.
const AUTOMATION: [&str; 32] = [
    "aiohttp",
    "apache-httpclient",
    "axios/",
    "crawler",
    "curl/",
    "faraday",
    "go-http-client",
    "got (",
    "guzzle",
    "headless",
    "httpie",
    "httpx",
    "insomnia",
    "java/",
    "java-http-client",
    "libwww",
    "node-fetch",
    "okhttp/",
    "phantomjs",
    "php/",
    "playwright",
    "postman",
    "puppeteer",
    "python-requests",
    "python-urllib",
    "python/",
    "ruby",
    "scrapy",
    "selenium",
    "spider",
    "undici",
    "wget/",
];

fn declares_automation(agent: &str) -> bool {
    let agent = agent.to_ascii_lowercase();
    AUTOMATION.iter().any(|name| agent.contains(name))
        || agent.split(|c: char| !c.is_ascii_alphabetic()).any(|word| {
            // CUBOT makes phones.
            word.ends_with("bot") && word != "cubot"
        })
}

/// Whether the user agent claims a browser that sends `Sec-Fetch-*` with every request.
fn always_sends_sec_fetch(agent: &str) -> bool {
    let at_least = |product: &str, major: u32, minor: u32| {
        version(agent, product).is_some_and(|found| found >= (major, minor))
    };
    // Web views inside apps are configured by the app, and differ.
    let is_web_view = agent.contains("; wv)");
    let is_safari = agent.contains(" Safari/") && at_least("Version/", 16, 4);
    !is_web_view && (at_least("Chrome/", 80, 0) || at_least("Firefox/", 90, 0) || is_safari)
}

/// The version that follows a product's name, such as `16.4` after `Version/`.
fn version(agent: &str, product: &str) -> Option<(u32, u32)> {
    let (_, text) = agent.split_once(product)?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().ok());
    let major = numbers.next()??;
    Some((major, numbers.next().flatten().unwrap_or(0)))
}
