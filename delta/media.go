package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-ab2cfece/delta-agents/action"
)

// mediaType checks the declared type of a content against what it looks like, and returns the type that is recorded: the
// declared one, or with none what was found. Images and audio must be recognised; of other files it must not be plain that
// they are something else.
func mediaType(declared string, data []byte) (string, error) {
	found := sniff(data)
	if declared == "" {
		if found == "" {
			found = "application/octet-stream"
		}
		return found, nil
	}
	kind, params, err := mime.ParseMediaType(declared)
	whole := mime.FormatMediaType(kind, params)
	if err != nil || !strings.Contains(kind, "/") || whole == "" || len(whole) > maxMediaType {
		return "", fmt.Errorf("its type %q is not a media type; write one such as \"image/png\"", action.CutTo(declared, maxMediaType))
	}
	if why := mismatch(kind, found); why != nil {
		return "", fmt.Errorf("its type is declared as %s: %w", kind, why)
	}
	return whole, nil
}

// maxMediaType is the longest type recorded, in bytes.
const maxMediaType = 255

// mismatch says why a content found to be of one type cannot be of another, nil where it may be.
func mismatch(declared, found string) error {
	if declared == "application/octet-stream" || plainName(declared) == found {
		return nil
	}
	top, _, _ := strings.Cut(declared, "/")
	switch {
	case declared == "image/svg+xml" || isText(declared):
		if found == textPlain {
			return nil
		}
	case found == "" && top != "image" && top != "audio" && !recognised(declared):
		return nil
	case found == zip && (strings.HasPrefix(declared, "application/vnd.") || strings.HasSuffix(declared, "+zip") || declared == "application/java-archive"):
		return nil
	case found == textPlain && top == "application" && !recognised(declared): // a format in text that we do not know
		return nil
	}
	if found == "" {
		return errors.New("it does not look like that; declare what it is, or application/octet-stream")
	}
	return fmt.Errorf("it looks like %s; declare that, or application/octet-stream", found)
}

// isText reports whether a type is text.
func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") ||
		slices.Contains([]string{"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/javascript"}, kind)
}

// plainName is the one name of a type that has several.
func plainName(kind string) string {
	if name, ok := otherNames[kind]; ok {
		return name
	}
	return kind
}

var otherNames = map[string]string{
	"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-ms-bmp": "image/bmp", "image/x-icon": "image/vnd.microsoft.icon",
	"image/heif": "image/heic",
	"audio/mp3":  "audio/mpeg", "audio/x-mp3": "audio/mpeg", "audio/wave": "audio/wav", "audio/x-wav": "audio/wav", "audio/vnd.wave": "audio/wav",
	"audio/x-flac": "audio/flac", "audio/opus": "audio/ogg", "audio/vorbis": "audio/ogg", "application/ogg": "audio/ogg",
	"audio/x-m4a": "audio/mp4", "audio/m4a": "audio/mp4", "audio/x-aiff": "audio/aiff", "audio/x-aac": "audio/aac",
	"video/webm": "audio/webm", "video/mp4": "audio/mp4", // containers: what is in them decides whoever plays them
	"application/x-gzip": "application/gzip", "application/x-zip-compressed": "application/zip",
}

// magic are the first bytes of types, in order; "?" stands for any byte.
var magic = []struct{ kind, mark string }{
	{"image/png", "\x89PNG\r\n\x1a\n"}, {"image/jpeg", "\xff\xd8\xff"}, {"image/gif", "GIF87a"}, {"image/gif", "GIF89a"},
	{"image/webp", "RIFF????WEBPVP"}, {"image/bmp", "BM????\x00\x00\x00\x00"}, {"image/tiff", "II*\x00"}, {"image/tiff", "MM\x00*"},
	{"image/vnd.microsoft.icon", "\x00\x00\x01\x00"}, {"image/avif", "????ftypavif"}, {"image/heic", "????ftyphei"},
	{"image/heic", "????ftypmif1"}, {"audio/mpeg", "ID3"}, {"audio/wav", "RIFF????WAVE"}, {"audio/ogg", "OggS\x00"},
	{"audio/flac", "fLaC"}, {"audio/mp4", "????ftyp"}, {"audio/aiff", "FORM????AIFF"}, {"audio/midi", "MThd"},
	{"audio/webm", "\x1aE\xdf\xa3"}, {"audio/amr", "#!AMR\n"},
	{pdf, "%PDF-"}, {zip, "PK\x03\x04"}, {zip, "PK\x05\x06"}, {"application/gzip", "\x1f\x8b\x08"},
	{"application/x-elf", "\x7fELF"}, {"application/vnd.microsoft.portable-executable", "MZ"}, {"application/x-mach-binary", "\xcf\xfa\xed\xfe"},
	{textPlain, "\xff\xfe"}, {textPlain, "\xfe\xff"}, // of UTF-16
}

const (
	textPlain = "text/plain"
	pdf       = "application/pdf"
	zip       = "application/zip"
)

// recognised reports whether a type has a mark: content of it has that.
func recognised(kind string) bool {
	return slices.ContainsFunc(magic, func(m struct{ kind, mark string }) bool { return m.kind == plainName(kind) })
}

// sniff returns what a content looks like, text/plain for any text, "" for what is not known. Of what reads as text only a
// PDF is something else: the others would not be text if they were what their first bytes say.
func sniff(data []byte) string {
	text := looksLikeText(data)
	for _, m := range magic {
		if (!text || m.kind == pdf) && begins(data, m.mark) {
			return m.kind
		}
	}
	if text {
		return textPlain
	}
	if len(data) >= 4 {
		return mpegAudio(binary.BigEndian.Uint32(data))
	}
	return ""
}

func begins(data []byte, mark string) bool {
	if len(data) < len(mark) {
		return false
	}
	for i := range len(mark) {
		if mark[i] != '?' && mark[i] != data[i] {
			return false
		}
	}
	return true
}

// mpegAudio recognises a stream without a container by the header of its first frame: eleven bits of sync, then a version
// and a layer that exist (ISO/IEC 11172-3, 2.4.1.3); layer 0 with the sync is AAC in ADTS.
func mpegAudio(h uint32) string {
	version, layer, rate := h>>19&3, h>>17&3, h>>12&15
	switch {
	case h>>21 != 0x7ff:
		return ""
	case h>>20 == 0xfff && layer == 0:
		return "audio/aac"
	case version != 1 && layer != 0 && rate != 15:
		return "audio/mpeg"
	}
	return ""
}

// looksLikeText reports whether content is UTF-8 without control characters other than those of text.
func looksLikeText(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", r) || r == 0x7f })
}
