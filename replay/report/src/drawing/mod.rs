//! Common parts of drawings: axes, paths, and text that is safe in markup; also stand-alone SVG pictures.
//!
//! The page's charts (`page::charts`) stretch with the page, and their texts are in the surrounding HTML. A [`Picture`]
//! is a file with a fixed size. This module does not know the meaning of the data.

mod axis;
mod curves;
mod paths;
mod picture;
mod text;

pub use self::axis::Axis;
pub(crate) use self::axis::Line;
pub use self::curves::{Point, Series, Words, curves};
pub(crate) use self::paths::{band, place, steps};
pub use self::picture::{LEFT, Picture, RIGHT, TOP, WIDTH, colour};
pub(crate) use self::text::{cut, shown};
