//! Pages from templates: `{{name}}` is replaced once, by values escaped for their place. Texts of
//! operators and visitors reach a page through here only.

use std::borrow::Cow;

use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;

use super::body::Body;

/// Escapes text for HTML, inside and outside of quoted attributes.
#[must_use]
pub fn html(text: &str) -> String {
    let escape = |character: char| -> Cow<'static, str> {
        match character {
            '&' => "&amp;".into(),
            '<' => "&lt;".into(),
            '>' => "&gt;".into(),
            '"' => "&quot;".into(),
            '\'' => "&#39;".into(),
            other => other.to_string().into(),
        }
    };
    text.chars().map(escape).collect()
}

/// Writes JSON for a `<script type="application/json">`: nothing in it can end the element.
#[must_use]
pub fn script_json(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Fills a template in one pass, so that values are never filled again.
#[must_use]
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut page = String::with_capacity(template.len() + 4096);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, tail)) = after.split_once("}}") else { break };
        page.push_str(before);
        let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        page.push_str(value.unwrap_or_default());
        rest = tail;
    }
    page.push_str(rest);
    page
}

/// A page that no cache keeps, under a policy without inline script or style.
#[must_use]
pub fn page(status: u16, html: String, policy: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert("referrer-policy", HeaderValue::from_static("strict-origin-when-cross-origin"));
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    response
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_filled_once_and_unknown_names_are_empty() {
        let page = fill("a {{x}} {{y}} {{x}} {{", &[("x", "{{y}}"), ("y", "Y")]);
        assert_eq!(page, "a {{y}} Y {{y}} {{");
    }

    #[test]
    fn nothing_breaks_out_of_its_place() {
        assert_eq!(html("<b a=\"'\">&"), "&lt;b a=&quot;&#39;&quot;&gt;&amp;");
        let text = script_json(&json!({ "name": "</script><!--" }));
        assert!(!text.contains('<') && !text.contains('>'), "{text}");
        let back: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["name"], "</script><!--");
    }
}
