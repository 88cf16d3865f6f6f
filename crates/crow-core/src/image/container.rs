//! The structure of image files, from start to end: detects truncated and damaged files without decoding pixels. Each
//! function returns width and height, or `None` for a damaged file.

/// Width and height in pixels.
pub(super) type ImageSize = (u32, u32);

/// Reads the size from a file of a type by [`super::image_type`].
pub(super) fn read_image_size(bytes: &[u8], mime: &str) -> Option<ImageSize> {
    let mut reader = ByteReader { rest: bytes };
    match mime {
        "image/png" => read_png_size(&mut reader),
        "image/jpeg" => read_jpeg_size(&mut reader),
        "image/gif" => read_gif_size(&mut reader),
        _ => read_webp_size(&mut reader),
    }
}

/// The rest of a file. Each read consumes bytes, so that every loop ends.
struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    fn take(&mut self, n_bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n_bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn take_byte(&mut self) -> Option<u8> {
        self.take_array().map(|[byte]| byte)
    }

    fn take_u32_len(&mut self, n_bytes: u32) -> Option<&'a [u8]> {
        self.take(usize::try_from(n_bytes).ok()?)
    }
}

/// PNG: a header, data chunks with checksums, and an end.
fn read_png_size(reader: &mut ByteReader<'_>) -> Option<ImageSize> {
    reader.take(8)?;
    let mut sides = None;
    let mut has_data = false;
    loop {
        let n_bytes = u32::from_be_bytes(reader.take_array()?);
        let before_chunk = reader.rest;
        let kind: [u8; 4] = reader.take_array()?;
        let mut data = ByteReader { rest: reader.take_u32_len(n_bytes)? };
        let checked_bytes = &before_chunk[..before_chunk.len() - reader.rest.len()];
        let sum = u32::from_be_bytes(reader.take_array()?);
        // Decoders need no other chunks.
        let is_needed = kind[0].is_ascii_uppercase();
        if !kind.iter().all(u8::is_ascii_alphabetic) || (is_needed && chunk_crc(checked_bytes) != sum) {
            return None;
        }
        match (&kind, sides) {
            (b"IHDR", None) if n_bytes == 13 => {
                sides =
                    Some((u32::from_be_bytes(data.take_array()?), u32::from_be_bytes(data.take_array()?)));
            }
            (b"IHDR", _) | (_, None) => return None,
            (b"IDAT", _) => has_data = true,
            (b"IEND", Some(_)) => return sides.filter(|_| has_data),
            (_, Some(_)) => {}
        }
    }
}

/// Computes the checksum of a chunk with a table.
fn chunk_crc(bytes: &[u8]) -> u32 {
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

/// JPEG: segments including a frame header, and scans up to the end.
fn read_jpeg_size(reader: &mut ByteReader<'_>) -> Option<ImageSize> {
    reader.take(2)?;
    let mut sides = None;
    let mut has_scan = false;
    loop {
        // Between segments only fill bytes are allowed; a scan is skipped up to the next marker.
        let marker = loop {
            match (reader.take_byte()?, reader.rest.first()) {
                (0xff, Some(0xff)) => {}
                (0xff, Some(0x00 | 0xd0..=0xd7)) if has_scan => drop(reader.take_byte()),
                (0xff, Some(_)) => break reader.take_byte()?,
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
        let n_bytes = usize::from(u16::from_be_bytes(reader.take_array()?));
        let mut segment = ByteReader { rest: reader.take(n_bytes.checked_sub(2)?)? };
        match marker {
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => {
                segment.take(1)?;
                let height = u16::from_be_bytes(segment.take_array()?);
                sides = Some((u16::from_be_bytes(segment.take_array()?).into(), height.into()));
            }
            0xda => has_scan = sides.is_some(),
            _ => {}
        }
    }
}

/// GIF: a screen, then images and extensions in blocks, and a trailer.
fn read_gif_size(reader: &mut ByteReader<'_>) -> Option<ImageSize> {
    reader.take(6)?;
    let sides =
        (u16::from_le_bytes(reader.take_array()?).into(), u16::from_le_bytes(reader.take_array()?).into());
    let [flags, _, _] = reader.take_array()?;
    reader.take(color_table_len(flags))?;
    let mut has_image = false;
    loop {
        match reader.take_byte()? {
            0x3b => return has_image.then_some(sides),
            0x21 => drop(reader.take_byte()?),
            0x2c => {
                let [.., flags] = reader.take_array::<9>()?;
                reader.take(color_table_len(flags))?;
                reader.take_byte()?;
                has_image = true;
            }
            _ => return None,
        }
        loop {
            match reader.take_byte()? {
                0 => break,
                n_bytes => drop(reader.take(n_bytes.into())?),
            }
        }
    }
}

/// Returns the length of the color table by these flags.
fn color_table_len(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// WebP: a list of chunks of the length in its header, including a picture or frames.
fn read_webp_size(reader: &mut ByteReader<'_>) -> Option<ImageSize> {
    reader.take(4)?;
    let n_bytes = u32::from_le_bytes(reader.take_array()?);
    let mut chunks = ByteReader { rest: reader.take_u32_len(n_bytes)? };
    chunks.take(4)?;
    let (mut canvas, mut picture) = (None, None);
    while !chunks.rest.is_empty() {
        let kind: [u8; 4] = chunks.take_array()?;
        let n_bytes = u32::from_le_bytes(chunks.take_array()?);
        let mut data = ByteReader { rest: chunks.take_u32_len(n_bytes)? };
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

fn webp_canvas(data: &mut ByteReader<'_>) -> Option<ImageSize> {
    data.take(4)?;
    let mut side = || data.take_array().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]) + 1);
    Some((side()?, side()?))
}

fn webp_lossy(data: &mut ByteReader<'_>) -> Option<ImageSize> {
    data.take(3)?;
    let is_frame = data.take_array()? == [0x9d, 0x01, 0x2a];
    let mut side = || data.take_array().map(|side| u32::from(u16::from_le_bytes(side) & 0x3fff));
    let sides = (side()?, side()?);
    is_frame.then_some(sides)
}

fn webp_lossless(data: &mut ByteReader<'_>) -> Option<ImageSize> {
    let is_picture = data.take_byte()? == 0x2f;
    let bits = u32::from_le_bytes(data.take_array()?);
    is_picture.then_some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
}

#[cfg(test)]
mod tests;
