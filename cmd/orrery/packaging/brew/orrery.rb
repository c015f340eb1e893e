class Orrery < Formula
  desc "Azure Cosmos DB's four APIs over one store, in one binary"
  homepage "https://github.com/orrerydb/orrery"
  version "@VERSION@"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/orrerydb/orrery/releases/download/v@VERSION@/orrery_v@VERSION@_darwin_arm64.tar.gz"
      sha256 "@SHA256_DARWIN_ARM64@"
    end
    on_intel do
      url "https://github.com/orrerydb/orrery/releases/download/v@VERSION@/orrery_v@VERSION@_darwin_amd64.tar.gz"
      sha256 "@SHA256_DARWIN_AMD64@"
    end
  end
  on_linux do
    on_arm do
      url "https://github.com/orrerydb/orrery/releases/download/v@VERSION@/orrery_v@VERSION@_linux_arm64.tar.gz"
      sha256 "@SHA256_LINUX_ARM64@"
    end
    on_intel do
      url "https://github.com/orrerydb/orrery/releases/download/v@VERSION@/orrery_v@VERSION@_linux_amd64.tar.gz"
      sha256 "@SHA256_LINUX_AMD64@"
    end
  end

  def install
    bin.install "orrery"
  end

  service do
    run [opt_bin/"orrery", "serve", "--data", var/"orrery"]
    keep_alive true
    log_path var/"log/orrery.log"
    error_log_path var/"log/orrery.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/orrery version")
  end
end
