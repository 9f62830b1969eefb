//! The side data in this process, for the memory store and for tests. It forgets everything when
//! the process ends, and its lists are bounded, since nothing else would ever shorten them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use parking_lot::Mutex;
use qm_core::id::{Place, RoomId};
use qm_core::time::TimeMs;
use qm_core::token::Verifier;

use super::alert::Alert;
use super::audit::AuditEntry;
use super::check_in::{CheckIn, Installation, Seen};
use super::credential::{ConsoleSession, CredentialId, MonitorLink, Operator, StreamTicket};
use super::history::{Bucket, Grain};
use super::notice::{Delivery, Notice, NoticeKey};
use super::{SideError, SideStore};

type Answer<T> = Result<T, SideError>;

/// Audit entries kept.
const AUDIT_MAX: usize = 50_000;
/// Installations kept; they are named by strangers.
const INSTALLATIONS_MAX: usize = 1000;
/// Sessions, links and tickets kept, each.
const CREDENTIALS_MAX: usize = 10_000;

/// Side data in memory.
#[derive(Debug, Default)]
pub struct MemorySide {
    credentials: Mutex<Credentials>,
    audit: Mutex<Audit>,
    check_ins: Mutex<HashMap<Installation, CheckIn>>,
    notices: Mutex<Notices>,
    history: Mutex<HashMap<(RoomId, Grain), BTreeMap<TimeMs, Bucket>>>,
    alerts: Mutex<Vec<Alert>>,
}

#[derive(Debug, Default)]
struct Credentials {
    operators: Vec<Operator>,
    sessions: Vec<ConsoleSession>,
    links: Vec<MonitorLink>,
    tickets: Vec<StreamTicket>,
}

#[derive(Debug, Default)]
struct Audit {
    last: u64,
    entries: VecDeque<AuditEntry>,
}

/// Notices of one generation of one room; tickets in line order.
#[derive(Debug, Default)]
struct RoomNotices {
    tickets: BTreeMap<u64, Notice>,
    references: BTreeMap<u64, Notice>,
}

#[derive(Debug, Default)]
struct Notices(HashMap<(RoomId, u64), RoomNotices>);

impl Notices {
    fn of(&mut self, key: &NoticeKey) -> (&mut BTreeMap<u64, Notice>, u64) {
        let room = self.0.entry((key.room.clone(), key.generation)).or_default();
        match key.place {
            Place::Ticket(number) => (&mut room.tickets, number),
            Place::Reference(number) => (&mut room.references, number),
        }
    }

    fn find(&mut self, key: &NoticeKey) -> Option<&mut Notice> {
        let (notices, number) = self.of(key);
        notices.get_mut(&number)
    }
}

/// Drops what ran out, then the oldest, so that one more fits.
fn make_room<T>(list: &mut Vec<T>, is_alive: impl FnMut(&T) -> bool) {
    list.retain(is_alive);
    if list.len() >= CREDENTIALS_MAX {
        list.remove(0);
    }
}

impl SideStore for MemorySide {
    async fn add_operator(&self, operator: Operator) -> Answer<()> {
        self.credentials.lock().operators.push(operator);
        Ok(())
    }

    async fn operators(&self) -> Answer<Vec<Operator>> {
        Ok(self.credentials.lock().operators.clone())
    }

    async fn operator(&self, id: &str) -> Answer<Option<Operator>> {
        let credentials = self.credentials.lock();
        Ok(credentials.operators.iter().find(|operator| operator.id == id).cloned())
    }

    async fn operator_by_verifier(&self, verifier: &Verifier) -> Answer<Option<Operator>> {
        let credentials = self.credentials.lock();
        Ok(credentials.operators.iter().find(|operator| operator.verifier == *verifier).cloned())
    }

    async fn renew_verifier(&self, id: &str, old: &Verifier, new: Verifier) -> Answer<bool> {
        let mut credentials = self.credentials.lock();
        let found = credentials.operators.iter_mut().find(|operator| operator.id == id);
        let Some(operator) = found.filter(|operator| operator.verifier == *old) else {
            return Ok(false);
        };
        if operator.past_kids.contains(&new.kid) {
            return Ok(false);
        }
        let before = std::mem::replace(&mut operator.verifier, new);
        operator.past_kids.push(before.kid);
        Ok(true)
    }

    async fn remove_operator(&self, id: &str) -> Answer<Option<Operator>> {
        let mut credentials = self.credentials.lock();
        let index = credentials.operators.iter().position(|operator| operator.id == id);
        let removed = index.map(|index| credentials.operators.remove(index));
        let holder = CredentialId::Operator(id.to_owned());
        credentials.sessions.retain(|session| session.holder != holder);
        Ok(removed)
    }

    async fn add_session(&self, session: ConsoleSession) -> Answer<()> {
        let mut credentials = self.credentials.lock();
        make_room(&mut credentials.sessions, |_| true);
        credentials.sessions.push(session);
        Ok(())
    }

    async fn session(&self, id: &str, now: TimeMs) -> Answer<Option<ConsoleSession>> {
        let mut credentials = self.credentials.lock();
        credentials.sessions.retain(|session| now < session.expires_at);
        Ok(credentials.sessions.iter().find(|session| session.id == id).cloned())
    }

    async fn remove_session(&self, id: &str) -> Answer<bool> {
        let mut credentials = self.credentials.lock();
        let before = credentials.sessions.len();
        credentials.sessions.retain(|session| session.id != id);
        Ok(credentials.sessions.len() < before)
    }

    async fn add_link(&self, link: MonitorLink) -> Answer<()> {
        let mut credentials = self.credentials.lock();
        make_room(&mut credentials.links, |_| true);
        credentials.links.push(link);
        Ok(())
    }

    async fn links(&self, now: TimeMs) -> Answer<Vec<MonitorLink>> {
        let mut credentials = self.credentials.lock();
        credentials.links.retain(|link| now < link.expires_at);
        Ok(credentials.links.clone())
    }

    async fn link(&self, id: &str, now: TimeMs) -> Answer<Option<MonitorLink>> {
        let credentials = self.credentials.lock();
        let alive = |link: &&MonitorLink| link.id == id && now < link.expires_at;
        Ok(credentials.links.iter().find(alive).cloned())
    }

    async fn remove_link(&self, id: &str) -> Answer<bool> {
        let mut credentials = self.credentials.lock();
        let before = credentials.links.len();
        credentials.links.retain(|link| link.id != id);
        Ok(credentials.links.len() < before)
    }

    async fn remove_links(&self) -> Answer<u64> {
        Ok(std::mem::take(&mut self.credentials.lock().links).len() as u64)
    }

    async fn add_stream_ticket(&self, ticket: StreamTicket) -> Answer<()> {
        let mut credentials = self.credentials.lock();
        make_room(&mut credentials.tickets, |_| true);
        credentials.tickets.push(ticket);
        Ok(())
    }

    async fn take_stream_ticket(&self, digest: &str, now: TimeMs) -> Answer<Option<StreamTicket>> {
        let mut credentials = self.credentials.lock();
        credentials.tickets.retain(|ticket| now < ticket.expires_at);
        let index = credentials.tickets.iter().position(|ticket| ticket.digest == digest);
        Ok(index.map(|index| credentials.tickets.remove(index)))
    }

    async fn add_audit(&self, mut entry: AuditEntry) -> Answer<u64> {
        let mut audit = self.audit.lock();
        audit.last += 1;
        entry.id = audit.last;
        // Two requests at once may come here in either order; the trail is in one.
        entry.at = audit.entries.back().map_or(entry.at, |last| entry.at.max(last.at));
        if audit.entries.len() >= AUDIT_MAX {
            audit.entries.pop_front();
        }
        audit.entries.push_back(entry);
        Ok(audit.last)
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> Answer<Vec<AuditEntry>> {
        let audit = self.audit.lock();
        let older = |entry: &&AuditEntry| before.is_none_or(|before| entry.id < before);
        Ok(audit.entries.iter().rev().filter(older).take(limit).cloned().collect())
    }

    async fn check_in(&self, seen: Seen) -> Answer<()> {
        let mut all = self.check_ins.lock();
        if all.len() >= INSTALLATIONS_MAX && !all.contains_key(&seen.installation) {
            let oldest = all.values().min_by_key(|known| known.last_at);
            if let Some(oldest) = oldest.map(|known| known.installation.clone()) {
                all.remove(&oldest);
            }
        }
        let Seen { installation, ok, at } = seen;
        let known = all.entry(installation.clone()).or_insert(CheckIn {
            installation,
            ok,
            last_at: at,
            count: 0,
        });
        (known.ok, known.last_at) = (ok, at);
        known.count += 1;
        Ok(())
    }

    async fn check_ins(&self) -> Answer<Vec<CheckIn>> {
        let mut all: Vec<CheckIn> = self.check_ins.lock().values().cloned().collect();
        all.sort_by(|a, b| (b.last_at, &a.installation).cmp(&(a.last_at, &b.installation)));
        Ok(all)
    }

    async fn put_notice(&self, notice: Notice) -> Answer<()> {
        let mut notices = self.notices.lock();
        let (of_room, number) = notices.of(&notice.key);
        of_room.insert(number, notice);
        Ok(())
    }

    async fn notice(&self, key: &NoticeKey) -> Answer<Option<Notice>> {
        Ok(self.notices.lock().find(key).cloned())
    }

    async fn remove_notice(&self, key: &NoticeKey) -> Answer<bool> {
        let mut notices = self.notices.lock();
        let (of_room, number) = notices.of(key);
        Ok(of_room.remove(&number).is_some())
    }

    async fn remove_room_notices(&self, room: &RoomId, generation: u64) -> Answer<u64> {
        let mut notices = self.notices.lock();
        let Some(of_room) = notices.0.get_mut(&(room.clone(), generation)) else { return Ok(0) };
        let before = of_room.tickets.len() + of_room.references.len();
        let was_sent = |_: &u64, notice: &mut Notice| notice.delivery != Delivery::Pending;
        of_room.tickets.retain(was_sent);
        of_room.references.retain(was_sent);
        Ok((before - of_room.tickets.len() - of_room.references.len()) as u64)
    }

    async fn move_notice(&self, from: &NoticeKey, to: NoticeKey) -> Answer<bool> {
        let mut notices = self.notices.lock();
        let (of_room, number) = notices.of(from);
        let Some(mut notice) = of_room.remove(&number) else { return Ok(false) };
        notice.key = to;
        notice.delivery = Delivery::Pending;
        let (of_room, number) = notices.of(&notice.key);
        of_room.insert(number, notice);
        Ok(true)
    }

    async fn pending_notices(
        &self,
        room: &RoomId,
        generation: u64,
        front: u64,
        limit: usize,
    ) -> Answer<Vec<Notice>> {
        let notices = self.notices.lock();
        let Some(of_room) = notices.0.get(&(room.clone(), generation)) else { return Ok(vec![]) };
        let is_pending = |notice: &&Notice| notice.delivery == Delivery::Pending;
        let tickets = of_room.tickets.range(..front).map(|(_, notice)| notice);
        let references = of_room.references.values().filter(is_pending).take(limit);
        Ok(tickets.filter(is_pending).take(limit).chain(references).cloned().collect())
    }

    async fn claim_notice(&self, key: &NoticeKey) -> Answer<bool> {
        let mut notices = self.notices.lock();
        let found = notices.find(key).filter(|notice| notice.delivery == Delivery::Pending);
        Ok(found.map(|notice| notice.delivery = Delivery::Sending).is_some())
    }

    async fn settle_notice(&self, key: &NoticeKey, delivery: Delivery) -> Answer<()> {
        if let Some(notice) = self.notices.lock().find(key) {
            notice.delivery = delivery;
        }
        Ok(())
    }

    async fn prune_notices(&self, before: TimeMs) -> Answer<u64> {
        let mut notices = self.notices.lock();
        let mut count = 0;
        notices.0.retain(|_, of_room| {
            let was = of_room.tickets.len() + of_room.references.len();
            of_room.tickets.retain(|_, notice| notice.requested_at >= before);
            of_room.references.retain(|_, notice| notice.requested_at >= before);
            let left = of_room.tickets.len() + of_room.references.len();
            count += (was - left) as u64;
            left > 0
        });
        Ok(count)
    }

    async fn save_history(&self, room: &RoomId, grain: Grain, buckets: Vec<Bucket>) -> Answer<()> {
        let mut history = self.history.lock();
        let of_room = history.entry((room.clone(), grain)).or_default();
        of_room.extend(buckets.into_iter().map(|bucket| (bucket.start, bucket)));
        Ok(())
    }

    async fn history(&self, room: &RoomId, grain: Grain, from: TimeMs) -> Answer<Vec<Bucket>> {
        let history = self.history.lock();
        let of_room = history.get(&(room.clone(), grain));
        Ok(of_room.map_or_else(Vec::new, |all| all.range(from..).map(|(_, b)| b.clone()).collect()))
    }

    async fn prune_history(&self, grain: Grain, before: TimeMs) -> Answer<()> {
        let mut history = self.history.lock();
        history.retain(|(_, of), buckets| {
            if *of == grain {
                *buckets = buckets.split_off(&before);
            }
            !buckets.is_empty()
        });
        Ok(())
    }

    async fn alerts(&self) -> Answer<Vec<Alert>> {
        Ok(self.alerts.lock().clone())
    }

    async fn raise_alert(&self, alert: Alert) -> Answer<bool> {
        let mut alerts = self.alerts.lock();
        let known = alerts.iter().any(|raised| raised.key() == alert.key());
        if !known {
            alerts.push(alert);
        }
        Ok(!known)
    }

    async fn clear_alert(&self, key: &str) -> Answer<bool> {
        let mut alerts = self.alerts.lock();
        let before = alerts.len();
        alerts.retain(|raised| raised.key() != key);
        Ok(alerts.len() < before)
    }
}
