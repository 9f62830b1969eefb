//! How many visitor streams are open, in all and by address (EVT-06).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use qm_core::address::AddressGroup;

use super::super::error::ApiError;
use crate::config::Limit;

/// Counts open streams and says when there are too many.
#[derive(Debug)]
pub struct Streams {
    total_max: Option<u32>,
    per_address_max: Option<u32>,
    open: Mutex<Open>,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct Open {
    total: u32,
    by_address: HashMap<AddressGroup, u32>,
}

/// A place among the open streams; dropping it gives the place back.
#[derive(Debug)]
pub struct StreamPlace {
    streams: Arc<Streams>,
    address: AddressGroup,
}

impl Streams {
    /// No stream is open.
    #[must_use]
    pub fn new(total: Limit, per_address: Limit, gauge: Gauge) -> Self {
        Self {
            total_max: total.number(),
            per_address_max: per_address.number(),
            open: Mutex::default(),
            gauge,
        }
    }

    /// Counts one more stream of this address.
    ///
    /// # Errors
    /// `sse_capacity` or `sse_per_ip_limit`.
    pub fn open(self: &Arc<Self>, address: AddressGroup) -> Result<StreamPlace, ApiError> {
        let mut open = self.open.lock();
        if self.total_max.is_some_and(|most| open.total >= most) {
            return Err(ApiError::sse_capacity());
        }
        let own = open.by_address.get(&address).copied().unwrap_or(0);
        if self.per_address_max.is_some_and(|most| own >= most) {
            return Err(ApiError::sse_per_ip_limit());
        }
        open.total += 1;
        open.by_address.insert(address, own + 1);
        self.gauge.set(i64::from(open.total));
        Ok(StreamPlace { streams: Arc::clone(self), address })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock();
        open.total = open.total.saturating_sub(1);
        self.streams.gauge.set(i64::from(open.total));
        if let Some(own) = open.by_address.get_mut(&self.address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}
