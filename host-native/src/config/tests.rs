//! Settings as an operator writes them: defaults, bounds, and one line for each mistake.

use std::collections::BTreeMap;

use super::*;

const RANDOM: [u8; 32] = [7; 32];

fn parse(settings: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let map: BTreeMap<String, String> =
        settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Config::parse(&map, RANDOM).map_err(|e| e.0.iter().map(ToString::to_string).collect())
}

#[test]
fn defaults() {
    let config = parse(&[]).unwrap();
    assert_eq!(config.bind.to_string(), "127.0.0.1:8080");
    assert!(config.keys.admin_is_default && config.keys.signing_is_random);
    assert_eq!((config.keys.admin.reveal(), &*config.keys.signing), ("admin-dev", &RANDOM[..]));
    assert_eq!(
        config.limits,
        Limits {
            join_per_minute: Limit::At(60),
            check_per_minute: Limit::At(600),
            notify_per_minute: Limit::At(10),
            admin_auth_failures_per_minute: Limit::At(10),
            streams_total: Limit::At(100_000),
            streams_per_address: Limit::At(64),
            connections: Limit::At(120_000),
            prequeue_per_room: Limit::At(2_000_000),
        }
    );
    assert_eq!(
        config.tokens,
        TokenSettings {
            sign_v2: false,
            max_age_seconds: 86_400,
            cookie_max_age_seconds: 86_400,
            room_cookie_cap: 8
        }
    );
    assert_eq!((config.history_retain_days, &*config.log_filter), (90, "info"));
    assert_eq!(config.trust_proxy, TrustProxy::None);
    assert!(config.mail.is_none() && config.public_origin.is_none() && !config.production);
}

#[test]
fn values() {
    let config = parse(&[
        ("ADMIN_KEY", "  mine "),
        ("SECRET", " s3cret\n"),
        ("SECRET_PREVIOUS", ""),
        ("PUBLIC_API_KEY", "one, two"),
        ("PORT", "0"),
        ("JOIN_LIMIT_PER_MIN", "off"),
        ("SSE_PER_IP", "1"),
        ("TOKEN_SIGN_V2", "1"),
        ("TRUST_PROXY", "cf"),
        ("PUBLIC_ORIGIN", "https://Queue.Example:443/"),
        ("EMAIL_NOTIFY", "1"),
        ("SMTP_URL", "smtp://127.0.0.1:25"),
        ("SMTP_FROM", "Queue <queue@example.test>"),
        ("LOG_FORMAT", "json"),
        ("QM_ENV", "test"),
    ])
    .unwrap();
    assert_eq!(config.bind.to_string(), "0.0.0.0:0");
    assert_eq!((config.keys.admin.reveal(), &*config.keys.signing), ("mine", &b"s3cret"[..]));
    assert!(!config.keys.admin_is_default && !config.keys.signing_is_random);
    assert!(config.keys.signing_previous.is_none());
    let public: Vec<_> = config.keys.public_api.iter().map(Secret::reveal).collect();
    assert_eq!(public, ["one", "two"]);
    assert_eq!(config.limits.join_per_minute, Limit::Off);
    assert_eq!(config.limits.streams_per_address, Limit::At(1));
    assert_eq!(config.trust_proxy, TrustProxy::Cloudflare);
    assert_eq!(config.public_origin.as_deref(), Some("https://queue.example"));
    assert!(config.tokens.sign_v2 && config.mail.is_some());
    assert_eq!(config.log_format, LogFormat::Json);
}

#[test]
fn wrong_values_are_named_with_their_bound() {
    for (name, value, bound) in [
        ("PORT", "http", "65535"),
        ("PORT", "65536", "65535"),
        ("HOST", "example.com", "IP address"),
        ("HOST", "0.0.0.0", "loopback"),
        ("HOST", "::", "loopback"),
        ("JOIN_LIMIT_PER_MIN", "0", "from 1 to 1000000, or off"),
        ("JOIN_LIMIT_PER_MIN", "1000001", "1000000"),
        ("JOIN_LIMIT_PER_MIN", "1.5", "whole number"),
        ("CHECK_LIMIT_PER_MIN", "-1", "1"),
        ("CHECK_LIMIT_PER_MIN", "+1", "1"),
        ("CHECK_LIMIT_PER_MIN", "many", "off"),
        ("TOKEN_MAX_AGE_SEC", "59", "60"),
        ("TOKEN_MAX_AGE_SEC", "1h", "60"),
        ("QUEUE_COOKIE_MAX_AGE_SEC", "31536001", "31536000"),
        ("ROOM_COOKIE_CAP", "0", "1"),
        ("ROOM_COOKIE_CAP", "51", "50"),
        ("MAX_CONNECTIONS", "0", "1"),
        ("PREQUEUE_MAX", "x", "1"),
        ("HISTORY_RETAIN_DAYS", "-3", "1"),
        ("TRUST_PROXY", "yes", "cf"),
        ("TRUST_PROXY", "-1", "32"),
        ("STORE", "redis", "valkey"),
        ("SIDESTORE", "sqlite", "pg"),
        ("LOG_FORMAT", "xml", "json"),
        ("TOKEN_SIGN_V2", "yes", "0 or 1"),
        ("EMAIL_NOTIFY", "true", "0 or 1"),
        ("SMTP_FROM", "nobody", "mail address"),
        ("PUBLIC_ORIGIN", "https://x.example/path", "origin"),
        ("PUBLIC_ORIGIN", "ftp://x.example", "origin"),
        ("RUST_LOG", "a=b=c", "directives"),
        ("QM_ENV", "prod", "production"),
    ] {
        let lines = parse(&[(name, value)]).unwrap_err();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line = &lines[0];
        assert!(line.starts_with(&format!("{name}={value}: ")) && line.contains(bound), "{line}");
    }
}

#[test]
fn secrets_are_refused_without_being_shown() {
    for (name, value) in [
        ("ADMIN_KEY", "hush\u{1}hush"),
        ("SECRET", "hush\nhush"),
        ("SECRET_PREVIOUS", "hush\thush"),
        ("PUBLIC_API_KEY", "hush,,hush"),
        ("EDGE_SECRET", "hush\u{fffd}"),
        ("SMTP_URL", "hush@mail"),
        ("DATABASE_URL", "mysql://u:hush@db/x"),
        ("VALKEY_URL", "redis://a,http://u:hush@b"),
        ("ALERT_WEBHOOK_URL", "hush"),
    ] {
        let lines = parse(&[(name, value)]).unwrap_err();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with(name) && !lines[0].contains("hush"), "{lines:?}");
    }
    let config = parse(&[("ADMIN_KEY", "hush"), ("EDGE_SECRET", "hush")]).unwrap();
    assert!(!format!("{config:?}").contains("hush"));
}

#[test]
fn settings_that_need_each_other() {
    let mail = [("EMAIL_NOTIFY", "1")];
    let valkey = [("STORE", "valkey")];
    let pg = [("STORE", "valkey"), ("SIDESTORE", "pg")];
    let production = [("NODE_ENV", "production")];
    let ours = [("QM_ENV", "production"), ("SIDESTORE", "pg")];
    let unknown = [("QM_JOIN_LIMIT", "5"), ("QUEUE", "x")];
    for (settings, names) in [
        (&mail[..], &["SMTP_URL", "SMTP_FROM"][..]),
        (&valkey, &["SIDESTORE", "VALKEY_URL", "STORE"]),
        (&pg, &["VALKEY_URL", "DATABASE_URL", "STORE", "SIDESTORE", "SECRET"]),
        (&production, &["STORE", "SIDESTORE"]),
        (&ours, &["STORE", "DATABASE_URL", "SIDESTORE", "SECRET"]),
        (&unknown, &["QM_JOIN_LIMIT"]),
    ] {
        let lines = parse(settings).unwrap_err();
        let seen: Vec<_> = lines.iter().map(|l| l.split(['=', ':']).next().unwrap()).collect();
        assert_eq!(seen, names, "{lines:?}");
    }
}

#[test]
fn the_default_key_stays_on_loopback() {
    for (host, admin, bound) in [
        ("", "", Some("127.0.0.1:8080")),
        ("localhost", "", Some("127.0.0.1:8080")),
        ("127.0.0.2", "admin-dev", Some("127.0.0.2:8080")),
        ("::1", "", Some("[::1]:8080")),
        ("[::1]", "", Some("[::1]:8080")),
        ("192.0.2.1", "", None),
        ("0.0.0.0", "admin-dev", None),
        ("0.0.0.0", "mine", Some("0.0.0.0:8080")),
        ("", "mine", Some("0.0.0.0:8080")),
    ] {
        let config = parse(&[("HOST", host), ("ADMIN_KEY", admin)]);
        assert_eq!(config.ok().map(|c| c.bind.to_string()).as_deref(), bound, "{host} {admin}");
    }
}

#[test]
fn one_line_whatever_the_value() {
    let lines = parse(&[("PORT", "1\n2\u{1b}[31m")]).unwrap_err();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with(r"PORT=1\n2\u{1b}[31m: "), "{lines:?}");
}
