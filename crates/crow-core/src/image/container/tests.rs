use super::*;
use crate::image::{decode_base64, image_type};

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const GIF: &str = "R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=";
const LOSSY: &str = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA";
const LOSSLESS: &str = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==";

/// A picture of three by two in two scans, with a comment, fill bytes and a restart.
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\x00\x04JF\xff\xfe\x00\x05\xff\xd9x\xff\xc0\x00\x0b\x08\x00\x02\x00\x03\x01\x01\x11\x00\
    \xff\xda\x00\x04\x01\x01ab\xff\x00c\xff\xd0d\xff\xff\xc4\x00\x02\xff\xda\x00\x02e\xff\xd9";

fn files() -> Vec<(Vec<u8>, ImageSize)> {
    let decoded = [(PNG, (1, 1)), (GIF, (1, 1)), (LOSSY, (1, 1)), (LOSSLESS, (1, 1))];
    let mut files: Vec<(Vec<u8>, ImageSize)> =
        decoded.into_iter().map(|(data, sides)| (decode_base64(data).unwrap(), sides)).collect();
    files.push((JPEG.to_vec(), (3, 2)));
    files
}

fn read(bytes: &[u8]) -> Option<ImageSize> {
    read_image_size(bytes, image_type(bytes)?)
}

#[test]
fn complete_file_is_read_but_no_prefix() {
    for (file, expected) in files() {
        assert_eq!(read(&file), Some(expected), "{file:?}");
        // Data after the end is ignored.
        assert_eq!(read(&[&file, b"more".as_slice()].concat()), Some(expected), "{file:?}");
        for n_bytes in 0..file.len() {
            assert_eq!(read(&file[..n_bytes]), None, "{:?}", &file[..n_bytes]);
        }
    }
}

#[test]
fn damaged_file_is_rejected() {
    for (file, _) in files() {
        for filler in [0, b'x', 0xff] {
            let mut wrong = file.clone();
            wrong[16..].fill(filler);
            assert_eq!(read(&wrong), None, "{wrong:?}");
        }
    }
    // One bit of the data is changed.
    let mut png = decode_base64(PNG).unwrap();
    png[45] ^= 1;
    assert_eq!(read(&png), None);
}
