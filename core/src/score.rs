//! The bot score of a join (HOL-39): a sum of weighted signals, 0 to 100. Signals that people
//! behind one address share stay together below [`ENFORCE_AT`], so an office is never refused for
//! what one of it does. The host gathers the facts; a room's protection mode decides what the score
//! means.

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

/// Names tools give themselves, in lower case. Crawlers declare themselves by `bot` at a word's
/// end.
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

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const CHROME: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                          Chrome/126.0.0.0 Safari/537.36";

    fn browser() -> RequestFacts<'static> {
        RequestFacts {
            user_agent: Some(CHROME),
            accept_language: Some("th,en;q=0.8"),
            accept: Some("*/*"),
            has_sec_fetch: true,
            forwarded_entries: 1,
            trusted_proxies: 1,
            ..RequestFacts::default()
        }
    }

    fn check(facts: &RequestFacts<'_>, expected: u8, names: &[&str]) {
        let signals = signals_of(facts);
        assert_eq!(signals.names().collect::<Vec<_>>(), names, "{facts:?}");
        assert_eq!(score(&signals), expected, "{facts:?}");
    }

    #[test]
    fn scores() {
        check(&browser(), 0, &[]);
        check(&RequestFacts { is_navigation: true, ..browser() }, 5, &["bare_accept"]);
        check(&RequestFacts { accept: None, ..browser() }, 5, &["bare_accept"]);
        check(&RequestFacts { has_sec_fetch: false, ..browser() }, 15, &["missing_sec_fetch"]);
        check(
            &RequestFacts { accept_language: Some(" "), ..browser() },
            10,
            &["no_accept_language"],
        );
        let office = RequestFacts { forwarded_entries: 9, regular_cadence: true, ..browser() };
        check(&office, 35, &["forged_forwarding", "regular_cadence"]);
        let python = RequestFacts {
            user_agent: Some("python-requests/2.32.3"),
            forwarded_entries: 3,
            trusted_proxies: 1,
            ..RequestFacts::default()
        };
        let names =
            ["declared_automation", "no_accept_language", "bare_accept", "forged_forwarding"];
        check(&python, 70, &names);
        let nothing = RequestFacts { forwarded_entries: 0, ..RequestFacts::default() };
        check(&nothing, 45, &["no_user_agent", "no_accept_language", "bare_accept"]);
        let headless = CHROME.replace("Chrome/", "HeadlessChrome/");
        let headless = RequestFacts { user_agent: Some(&headless), ..python };
        assert_eq!(score(&signals_of(&RequestFacts { regular_cadence: true, ..headless })), 100);
    }

    #[test]
    fn no_shared_address_reaches_the_threshold() {
        let signals =
            Signals { forged_forwarding: true, regular_cadence: true, ..Signals::default() };
        assert!(score(&signals) < ENFORCE_AT);
    }

    #[test]
    fn agents() {
        for (agent, automation, fetch) in [
            (CHROME, false, true),
            ("Mozilla/5.0 (Windows NT 10.0; rv:127.0) Gecko/20100101 Firefox/127.0", false, true),
            ("Mozilla/5.0 (Windows NT 10.0; rv:78.0) Gecko/20100101 Firefox/78.0", false, false),
            ("Mozilla/5.0 (Macintosh) Version/16.4 Safari/605.1.15", false, true),
            ("Mozilla/5.0 (Macintosh) Version/16.3 Safari/605.1.15", false, false),
            ("Mozilla/5.0 (Macintosh) Version/17 Safari/605.1.15", false, true),
            ("Mozilla/5.0 (Linux; Android 4.4; wv) Version/4.0 Chrome/126.0 Mobile", false, false),
            ("Mozilla/5.0 (iPhone) CriOS/126.0 Mobile/15E148 Safari/604.1", false, false),
            ("Mozilla/5.0 (Linux; Android 9; CUBOT X19) Chrome/79.0 Safari/537.36", false, false),
            ("Mozilla/5.0 (compatible; Googlebot/2.1)", true, false),
            ("Mozilla/5.0 (compatible; bingbot/2.0) Chrome/126.0", true, true),
            ("curl/8.5.0", true, false),
            ("Go-http-client/2.0", true, false),
            ("Chrome/", false, false),
            ("Chrome/99999999999999", false, false),
        ] {
            let facts = RequestFacts { user_agent: Some(agent), has_sec_fetch: false, ..browser() };
            let signals = signals_of(&facts);
            assert_eq!(signals.declared_automation, automation, "{agent}");
            assert_eq!(signals.missing_sec_fetch, fetch, "{agent}");
        }
    }
}
