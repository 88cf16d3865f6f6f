//! The structure of an image's file, from its beginning to its end: what is cut or mixed up is found without decoding a pixel.
//! Each function gives the width and height, or `None` where the file is broken.

/// Sides in pixels.
pub(super) type Sides = (u32, u32);

/// Reads a file of a type that [`super::image_type`] names.
pub(super) fn sides(bytes: &[u8], mime: &str) -> Option<Sides> {
    let mut reader = Reader { rest: bytes };
    match mime {
        "image/png" => png(&mut reader),
        "image/jpeg" => jpeg(&mut reader),
        "image/gif" => gif(&mut reader),
        _ => webp(&mut reader),
    }
}

/// What is left of a file. Each reading takes something, so that every loop ends.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, n_bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n_bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn take_u32(&mut self, n_bytes: u32) -> Option<&'a [u8]> {
        self.take(usize::try_from(n_bytes).ok()?)
    }
}

/// A header, data in pieces with a checksum each, and an end.
fn png(reader: &mut Reader<'_>) -> Option<Sides> {
    reader.take(8)?;
    let mut sides = None;
    let mut has_data = false;
    loop {
        let n_bytes = u32::from_be_bytes(reader.array()?);
        let whole = reader.rest;
        let kind: [u8; 4] = reader.array()?;
        let mut data = Reader { rest: reader.take_u32(n_bytes)? };
        let checked = &whole[..whole.len() - reader.rest.len()];
        let sum = u32::from_be_bytes(reader.array()?);
        // Of the others decoders need none.
        let is_needed = kind[0].is_ascii_uppercase();
        if !kind.iter().all(u8::is_ascii_alphabetic) || (is_needed && crc(checked) != sum) {
            return None;
        }
        match (&kind, sides) {
            (b"IHDR", None) if n_bytes == 13 => {
                sides = Some((u32::from_be_bytes(data.array()?), u32::from_be_bytes(data.array()?)));
            }
            (b"IHDR", _) | (_, None) => return None,
            (b"IDAT", _) => has_data = true,
            (b"IEND", Some(_)) => return sides.filter(|_| has_data),
            (_, Some(_)) => {}
        }
    }
}

/// The checksum of a piece, bit by bit of a byte at a time.
fn crc(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc_table();
    !bytes.iter().fold(!0, |sum, byte| {
        let [low, ..] = sum.to_le_bytes();
        TABLE[usize::from(low ^ byte)] ^ (sum >> 8)
    })
}

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    let mut sum = 0_u32;
    while byte < 256 {
        let mut value = sum;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
        sum += 1;
    }
    table
}

/// Segments, of which one is a frame's header, and scans up to the end.
fn jpeg(reader: &mut Reader<'_>) -> Option<Sides> {
    reader.take(2)?;
    let mut sides = None;
    let mut has_scan = false;
    loop {
        // Between segments only filling may stand; a scan is gone through up to the next marker.
        let marker = loop {
            match (reader.byte()?, reader.rest.first()) {
                (0xff, Some(0xff)) => {}
                (0xff, Some(0x00 | 0xd0..=0xd7)) if has_scan => drop(reader.byte()),
                (0xff, Some(_)) => break reader.byte()?,
                (_, _) if has_scan => {}
                (_, _) => return None,
            }
        };
        match marker {
            0xd9 => return sides.filter(|_| has_scan),
            0x01 | 0xd0..=0xd7 => continue,
            0x00 | 0xd8 => return None,
            _ => {}
        }
        let n_bytes = usize::from(u16::from_be_bytes(reader.array()?));
        let mut segment = Reader { rest: reader.take(n_bytes.checked_sub(2)?)? };
        match marker {
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => {
                segment.take(1)?;
                let height = u16::from_be_bytes(segment.array()?);
                sides = Some((u16::from_be_bytes(segment.array()?).into(), height.into()));
            }
            0xda => has_scan = sides.is_some(),
            _ => {}
        }
    }
}

/// A screen, then images and extensions in blocks, and a trailer.
fn gif(reader: &mut Reader<'_>) -> Option<Sides> {
    reader.take(6)?;
    let sides = (u16::from_le_bytes(reader.array()?).into(), u16::from_le_bytes(reader.array()?).into());
    let [flags, _, _] = reader.array()?;
    reader.take(colours_len(flags))?;
    let mut has_image = false;
    loop {
        match reader.byte()? {
            0x3b => return has_image.then_some(sides),
            0x21 => drop(reader.byte()?),
            0x2c => {
                let [.., flags] = reader.array::<9>()?;
                reader.take(colours_len(flags))?;
                reader.byte()?;
                has_image = true;
            }
            _ => return None,
        }
        loop {
            match reader.byte()? {
                0 => break,
                n_bytes => drop(reader.take(n_bytes.into())?),
            }
        }
    }
}

/// How long the table of colours is that these flags speak of.
fn colours_len(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// A list of chunks as long as its header says, with a picture or frames among them.
fn webp(reader: &mut Reader<'_>) -> Option<Sides> {
    reader.take(4)?;
    let n_bytes = u32::from_le_bytes(reader.array()?);
    let mut chunks = Reader { rest: reader.take_u32(n_bytes)? };
    chunks.take(4)?;
    let (mut canvas, mut picture) = (None, None);
    while !chunks.rest.is_empty() {
        let kind: [u8; 4] = chunks.array()?;
        let n_bytes = u32::from_le_bytes(chunks.array()?);
        let mut data = Reader { rest: chunks.take_u32(n_bytes)? };
        if n_bytes % 2 == 1 && !chunks.rest.is_empty() {
            chunks.take(1)?;
        }
        match &kind {
            b"VP8X" => canvas = Some(webp_canvas(&mut data)?),
            b"VP8 " => picture = Some(webp_lossy(&mut data)?),
            b"VP8L" => picture = Some(webp_lossless(&mut data)?),
            b"ANMF" => picture = picture.or(canvas),
            _ => {}
        }
    }
    picture.map(|picture| canvas.unwrap_or(picture))
}

fn webp_canvas(data: &mut Reader<'_>) -> Option<Sides> {
    data.take(4)?;
    let mut side = || data.array().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]) + 1);
    Some((side()?, side()?))
}

fn webp_lossy(data: &mut Reader<'_>) -> Option<Sides> {
    data.take(3)?;
    let is_frame = data.array()? == [0x9d, 0x01, 0x2a];
    let mut side = || data.array().map(|side| u32::from(u16::from_le_bytes(side) & 0x3fff));
    let sides = (side()?, side()?);
    is_frame.then_some(sides)
}

fn webp_lossless(data: &mut Reader<'_>) -> Option<Sides> {
    let is_picture = data.byte()? == 0x2f;
    let bits = u32::from_le_bytes(data.array()?);
    is_picture.then_some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
}

#[cfg(test)]
mod tests;
