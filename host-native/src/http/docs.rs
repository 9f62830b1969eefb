//! The guides as pages (DOC-*): Markdown of `docs/` built into the binary, with the addresses of
//! this very server and anchors that are English slugs in every language.

use std::collections::HashMap;
use std::sync::LazyLock;

use hyper::Response;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html as to_html};

use super::app::{App, VERSION};
use super::asset::{NOT_FOUND_HTML, asset_path};
use super::body::Body;
use super::connector::public_origin;
use super::error::ApiError;
use super::request::Ask;
use super::template::{fill, html, page};

/// A guide in one language.
struct Guide {
    name: &'static str,
    title: &'static str,
    text: &'static str,
}

/// The guides in English, in the order of the list.
const ENGLISH: &[Guide] = &[
    Guide {
        name: "integration",
        title: "Integration",
        text: include_str!("../../../docs/integration.md"),
    },
    Guide {
        name: "operations",
        title: "Operations",
        text: include_str!("../../../docs/operations.md"),
    },
    Guide { name: "draw", title: "The draw", text: include_str!("../../../docs/draw.md") },
    Guide {
        name: "architecture",
        title: "Architecture",
        text: include_str!("../../../docs/architecture.md"),
    },
];

/// The guides in Thai.
const THAI: &[Guide] = &[];

const CHANGELOG: &str = include_str!("../../../CHANGELOG.md");

/// Rendered guides, before the addresses are put in.
static RENDERED: LazyLock<HashMap<(&'static str, &'static str), String>> = LazyLock::new(|| {
    let all = [("en", ENGLISH), ("th", THAI)];
    let all = all.into_iter().flat_map(|(code, guides)| guides.iter().map(move |g| (code, g)));
    all.map(|(code, guide)| ((code, guide.name), render(guide.text))).collect()
});

/// `GET /docs` and `GET /docs/th`: the list; `GET /docs/:name` and `GET /docs/th/:name`: a guide.
///
/// # Errors
/// `not_found`.
pub fn docs(app: &App, ask: &Ask, rest: &str) -> Result<Response<Body>, ApiError> {
    let (code, name) = match rest {
        "" => ("en", ""),
        "/th" => ("th", ""),
        _ => match rest.strip_prefix("/th/") {
            Some(name) => ("th", name),
            None => ("en", rest.strip_prefix('/').unwrap_or_default()),
        },
    };
    let (base, guides) = if code == "th" { ("/docs/th", THAI) } else { ("/docs", ENGLISH) };
    if name.is_empty() {
        let title = if code == "th" { "คู่มือ" } else { "Guides" };
        let item = |guide: &Guide| {
            format!("<li><a href=\"{base}/{}\">{}</a></li>", guide.name, html(guide.title))
        };
        let list: String = guides.iter().map(item).collect();
        return Ok(plain(code, title, &format!("<ul>{list}</ul>")));
    }
    let guide = guides.iter().find(|guide| guide.name == name).ok_or_else(ApiError::not_found)?;
    let rendered = RENDERED.get(&(code, guide.name)).ok_or_else(ApiError::not_found)?;
    let origin = html(&public_origin(app, ask));
    let body = rendered.replace("{server}", &origin).replace(PLACEHOLDER, &origin);
    let note = if code == "th" {
        format!("<p>ที่อยู่ในหน้านี้เป็นของเซิร์ฟเวอร์นี้: <code>{origin}</code></p>")
    } else {
        format!("<p>Addresses on this page are those of this server: <code>{origin}</code></p>")
    };
    Ok(plain(code, guide.title, &(note + &body)))
}

/// `GET /progress`: what this release brings.
pub fn progress() -> Response<Body> {
    static BODY: LazyLock<String> = LazyLock::new(|| render(CHANGELOG));
    plain("en", &format!("Queue Manager {VERSION}"), &BODY)
}

fn plain(code: &str, title: &str, body: &str) -> Response<Body> {
    let title = html(title);
    let values = [
        ("lang", code),
        ("dir", "ltr"),
        ("title", &*title),
        ("heading", &title),
        ("body", body),
        ("css", asset_path("waiting.css")),
    ];
    let policy = "default-src 'none'; style-src 'self'; img-src 'self' data:; \
                  base-uri 'none'; form-action 'none'; frame-ancestors 'self'";
    page(200, fill(NOT_FOUND_HTML, &values), policy)
}

/// Markdown as HTML. The guides are ours, so raw HTML in them would be a mistake and is shown.
fn render(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut events: Vec<Event<'_>> = Parser::new_ext(markdown, options)
        .map(|event| match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            other => other,
        })
        .collect();
    name_headings(&mut events);
    let mut out = String::with_capacity(markdown.len() * 2);
    to_html::push_html(&mut out, events.into_iter());
    out
}

/// Gives every heading an anchor: the one it names, `{#like-this}`, or the slug of its words.
fn name_headings(events: &mut [Event<'_>]) {
    let mut taken: HashMap<String, u32> = HashMap::new();
    for index in 0..events.len() {
        let Event::Start(Tag::Heading { id: None, .. }) = &events[index] else { continue };
        let inside = events[index + 1..]
            .iter()
            .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let words: String = inside
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(&**text),
                _ => None,
            })
            .collect();
        let slug = slug(&words);
        let count = taken.entry(slug.clone()).and_modify(|count| *count += 1).or_insert(0);
        let slug = if *count == 0 { slug } else { format!("{slug}-{count}") };
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[index] {
            *id = Some(CowStr::from(slug));
        }
    }
}

fn slug(words: &str) -> String {
    let mut slug = String::with_capacity(words.len());
    for c in words.to_ascii_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' | '_' => slug.push(c),
            ' ' | '-' if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "section".into() } else { slug.into() }
}

/// How the guides name a server that they cannot know.
const PLACEHOLDER: &str = "https://queue.example.com";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_english_anchors() {
        let text = "# Installable connectors\n\n## ก {#guide}\n\n## `qm_token`\n\n## ข\n\n## ค\n";
        let page = render(text);
        for anchor in ["installable-connectors", "guide", "qm_token", "section", "section-1"] {
            assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor} in {page}");
        }
    }

    #[test]
    fn raw_html_is_shown_and_tables_are_tables() {
        let page = render("<script>x</script>\n\n| a | b |\n| - | - |\n| 1 | 2 |\n");
        assert!(!page.contains("<script>") && page.contains("<table>"), "{page}");
    }
}
