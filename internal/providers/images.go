package providers

import (
	"net/netip"
	"net/url"
	"strings"
)

// checkImages refuses a request that has http image URLs.
func checkImages(r *Request) error {
	for _, m := range r.Messages {
		for _, part := range m.Parts {
			if strings.HasPrefix(strings.ToLower(part.ImageURL), "http") {
				return &Error{
					Kind: KindUnsupported, Code: "unsupported", Param: "messages",
					Message: "This model's provider does not fetch images by URL; send the image as a data URL.",
				}
			}
		}
	}
	return nil
}

// private says whether a base URL is inside somebody's network: an address or a name that the public doesn't have.
// It asks no resolver.
func private(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return true
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
	}
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}
