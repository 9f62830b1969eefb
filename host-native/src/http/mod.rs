//! The HTTP front: connections, requests, routes and answers. It calls rooms and guards; nothing
//! calls it.

pub mod admin;
pub mod answer;
pub mod app;
pub mod asset;
pub mod body;
pub mod connection;
pub mod connector;
pub mod docs;
pub mod error;
pub mod framing;
pub mod health;
pub mod openapi;
pub mod read_body;
pub mod request;
pub mod router;
pub mod server;
pub mod template;
mod unreadable;
pub mod visitor;
