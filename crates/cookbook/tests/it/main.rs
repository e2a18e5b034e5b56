//! Each recipe runs in a namespace of its own and prints what the guide shows; the guide shows all of them.

mod contracts;
mod examples;
mod guest;
mod links;
mod recipes;
mod tasks;
