//! What all drawings have in common: axes, paths, and text that is safe in markup; and pictures in SVG that stand alone.
//!
//! The page's charts (`page::charts`) stretch with the page, and HTML around them has their words; a [`Picture`] is a file with a size of its
//! own. It must not know what is drawn.

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
