//! Sends the mail that a visitor asked for when the turn comes (NOT-*): one mail, plain text and
//! HTML, with a link back and no token in it. What is told of the delivery is what the mail server
//! said.

use std::sync::Arc;
use std::time::Duration;

use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::Error as SmtpError;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use qm_core::id::Place;
use qm_core::room::Standing;
use tokio::sync::{Semaphore, watch};

use super::mail_text::text_of;
use super::{Parts, next_tick, timer};
use crate::config::MailSettings;
use crate::rooms::RoomHandle;
use crate::side::SideError;
use crate::side::notice::{Delivery, Notice, NoticeKey};

const EVERY: Duration = Duration::from_secs(1);
const BATCH: usize = 200;
/// Mails under way at one time.
const SENDING_MAX: usize = 8;
/// Pauses before each try of a mail that was put off.
const RETRIES: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];
const PRUNE_EVERY: u32 = 300;

type Transport = AsyncSmtpTransport<Tokio1Executor>;

/// The post office: where mails go and from whom.
struct Post {
    transport: Transport,
    from: Mailbox,
    /// Where the waiting pages are.
    origin: String,
    places: Arc<Semaphore>,
}

pub(super) async fn run(parts: Parts, settings: MailSettings, mut stopping: watch::Receiver<bool>) {
    let Some(post) = Post::open(&settings, &parts.server) else {
        tracing::error!("SMTP_URL or SMTP_FROM cannot be used: no mail is sent");
        return;
    };
    let post = Arc::new(post);
    let mut timer = timer(EVERY);
    let mut looks = 0_u32;
    while next_tick(&mut timer, &mut stopping).await {
        for room in parts.rooms.all() {
            if let Err(error) = look_at_room(&parts, &post, &room).await {
                tracing::error!(%error, room = %room.id(), "notices are not looked at");
            }
        }
        if looks.is_multiple_of(PRUNE_EVERY) {
            let before =
                qm_core::time::TimeMs(parts.clock.now().0.saturating_sub(parts.notice_retain_ms));
            if let Err(error) = parts.side.prune_notices(before).await {
                tracing::error!(%error, "old notices are not forgotten");
            }
        }
        looks = looks.wrapping_add(1);
    }
    // What is under way ends first, within the time of a stop.
    let all = u32::try_from(SENDING_MAX).unwrap_or(u32::MAX);
    let ended = tokio::time::timeout(Duration::from_secs(5), post.places.acquire_many(all)).await;
    if ended.is_err() {
        tracing::warn!("mails were under way and are cut");
    }
}

async fn look_at_room(
    parts: &Parts,
    post: &Arc<Post>,
    room: &Arc<RoomHandle>,
) -> Result<(), SideError> {
    let (generation, front) = (room.generation(), room.changes.front());
    let pending = parts.side.pending_notices(room.id(), generation, front, BATCH).await?;
    for notice in pending {
        if let Place::Reference(reference) = notice.key.place
            && let Some(number) = room.look(|room, _, _| room.drawn_ticket(reference))
        {
            let to = NoticeKey { place: Place::Ticket(number), ..notice.key.clone() };
            parts.side.move_notice(&notice.key, to).await?;
            continue;
        }
        let place = notice.key.place;
        let (standing, name) = room.look(|room, presence, now| {
            (room.standing(place, presence, now), room.settings().name.clone())
        });
        match standing {
            Standing::Waiting { .. } | Standing::PreQueued { .. } => {}
            Standing::Passed { .. } | Standing::Admitted { .. } => {
                if parts.side.claim_notice(&notice.key).await? {
                    let (parts, post) = (parts.clone(), Arc::clone(post));
                    tokio::spawn(async move { post.deliver(&parts, &notice, &name).await });
                }
            }
            Standing::Ended(_) | Standing::Unknown => {
                parts.side.remove_notice(&notice.key).await?;
            }
        }
    }
    Ok(())
}

impl Post {
    fn open(settings: &MailSettings, origin: &str) -> Option<Self> {
        let url = transport_url(settings.smtp_url.reveal())?;
        let transport = Transport::from_url(&url).ok()?.timeout(Some(SMTP_TIME_MAX)).build();
        let from = settings.from.parse().ok()?;
        let places = Arc::new(Semaphore::new(SENDING_MAX));
        Some(Self { transport, from, origin: origin.to_owned(), places })
    }

    async fn deliver(&self, parts: &Parts, notice: &Notice, room_name: &str) {
        let Ok(_place) = self.places.acquire().await else { return };
        let sent = match self.write(notice, room_name) {
            Some(mail) => self.send(mail).await,
            None => false,
        };
        let delivery = if sent { Delivery::Sent } else { Delivery::Failed };
        let room = &notice.key.room;
        tracing::info!(%room, delivery = delivery.as_str(), "a notice was mailed");
        if let Err(error) = parts.side.settle_notice(&notice.key, delivery).await {
            tracing::error!(%error, %room, "how a delivery went is not noted");
        }
    }

    /// Tries until the mail server has said yes or no.
    async fn send(&self, mail: Message) -> bool {
        for pause in RETRIES {
            tokio::time::sleep(pause).await;
            match self.transport.send(mail.clone()).await {
                Ok(_accepted) => return true,
                Err(error) => {
                    tracing::warn!(error = kind_of(&error), "a mail is not sent yet");
                    if error.is_permanent() {
                        return false;
                    }
                }
            }
        }
        false
    }

    fn write(&self, notice: &Notice, room_name: &str) -> Option<Message> {
        let text = text_of(&notice.language);
        let fill = |line: &str| line.replace("{name}", room_name);
        let link = format!("{}/w/{}?lang={}", self.origin, notice.key.room, text.code);
        let plain = format!("{}\n\n{}:\n{link}\n\n{}\n", fill(text.turn), text.link, text.why);
        let html = format!(
            "<!doctype html>\n<html lang=\"{}\" dir=\"{}\"><head><meta charset=\"utf-8\">\
             <title>{}</title></head>\n<body><p>{}</p>\n<p><a href=\"{}\">{}</a></p>\n\
             <p>{}</p>\n<p>{}</p></body></html>\n",
            text.code,
            text.direction,
            escaped(&fill(text.subject)),
            escaped(&fill(text.turn)),
            escaped(&link),
            escaped(text.link),
            escaped(&link),
            escaped(text.why),
        );
        Message::builder()
            .from(self.from.clone())
            .to(notice.email.parse().ok()?)
            .subject(fill(text.subject))
            .multipart(MultiPart::alternative_plain_html(plain, html))
            .ok()
    }
}

/// What went wrong, without the address that a mail server may repeat.
fn kind_of(error: &SmtpError) -> &'static str {
    match () {
        () if error.is_permanent() => "refused",
        () if error.is_transient() => "put off",
        () if error.is_timeout() => "no answer in time",
        () if error.is_tls() => "TLS failed",
        () => "not reached",
    }
}

/// TLS where the server offers it; always, when a password would be sent or the address says so.
fn transport_url(text: &str) -> Option<String> {
    let mut url = url::Url::parse(text).ok()?;
    if url.scheme() == "smtp" && !url.query_pairs().any(|(name, _)| name == "tls") {
        let has_password = !url.username().is_empty() || url.password().is_some();
        let tls = if has_password { "required" } else { "opportunistic" };
        url.query_pairs_mut().append_pair("tls", tls);
    }
    Some(url.into())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const SMTP_TIME_MAX: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_travels_in_tls_only() {
        for (url, expected) in [
            ("smtp://mail.example", "smtp://mail.example?tls=opportunistic"),
            ("smtp://u:p@mail.example:587", "smtp://u:p@mail.example:587?tls=required"),
            ("smtp://mail.example?tls=required", "smtp://mail.example?tls=required"),
            ("smtps://u:p@mail.example", "smtps://u:p@mail.example"),
        ] {
            assert_eq!(transport_url(url).as_deref(), Some(expected));
        }
    }
}
