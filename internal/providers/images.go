package providers

import (
	"net/netip"
	"net/url"
	"strings"
)

// imageBytes is the type and the base64 of a data URL; false for any other URL, as the gateway fetches none.
func imageBytes(url string) (media, data string, ok bool) {
	head, data, found := strings.Cut(url, ",")
	head = strings.ToLower(head)
	media, _, _ = strings.Cut(strings.TrimPrefix(head, "data:"), ";")
	return media, data, found && data != "" && strings.HasPrefix(head, "data:") && strings.HasSuffix(head, ";base64")
}

// checkFetch refuses http image URLs where the provider would fetch them from inside somebody's network, unless the
// candidate allows it. own is the provider's base URL.
func checkFetch(call Call, own string) error {
	if call.Options.ImageURLs || !private(baseURL(call, own)) {
		return nil
	}
	return checkImages(call.Request)
}

// checkImages refuses a request that has http image URLs.
func checkImages(r *Request) error {
	for _, m := range r.Messages {
		for _, part := range m.Parts {
			if isHTTP(part.ImageURL) {
				return &Error{
					Kind: KindUnsupported, Code: "unsupported", Param: "messages",
					Message: "This model's provider does not fetch images by URL; send the image as a data URL.",
				}
			}
		}
	}
	return nil
}

func isHTTP(url string) bool { return strings.HasPrefix(strings.ToLower(url), "http") }

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
