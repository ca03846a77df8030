//! The server of adb, which the client would start where none runs, or end where its version is another: both would change what other
//! programs of the user have.
//!
//! Protocol: docs/dev/overview.md and SERVICES.TXT of packages/modules/adb: four hexadecimal digits of length, the request, `OKAY` or `FAIL`.

use super::AdbError;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// `DEFAULT_ADB_PORT`.
const PORT: u16 = 5037;
/// A server on this machine answers at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks whether a server listens where the client looks for one, and whether it is of the client's version: the number at the end of
/// `Android Debug Bridge version 1.0.41`. A server that is not reached by TCP is not looked at.
///
/// # Errors
/// None listens, or it is another.
pub fn check_server(client_version: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<(), AdbError> {
    let Some(at) = address(variable) else { return Ok(()) };
    let said = ask(&at).map_err(|source| AdbError::NoServer { at: at.clone(), source })?;
    let other = |why: String| AdbError::OtherServer { at: at.clone(), why };
    let server = u32::from_str_radix(said.trim(), 16).map_err(|_| other(format!("it answers {said:?}")))?;
    let client: Option<u32> = client_version.rsplit('.').next().and_then(|digits| digits.trim().parse().ok());
    match client {
        Some(client) if client != server => {
            Err(other(format!("it is of version {server}, and adb of version {client}")))
        }
        _ => Ok(()),
    }
}

/// Where the client looks (adb(1), ENVIRONMENT VARIABLES): `ADB_SERVER_SOCKET`, else address and port.
fn address(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    if let Some(socket) = variable("ADB_SERVER_SOCKET") {
        let rest = socket.strip_prefix("tcp:")?;
        return Some(if rest.contains(':') { rest.to_owned() } else { format!("127.0.0.1:{rest}") });
    }
    let port = variable("ANDROID_ADB_SERVER_PORT").and_then(|port| port.parse().ok()).unwrap_or(PORT);
    let host = variable("ANDROID_ADB_SERVER_ADDRESS").unwrap_or_else(|| "127.0.0.1".to_owned());
    Some(format!("{host}:{port}"))
}

fn ask(at: &str) -> io::Result<String> {
    let no_address = || io::Error::new(io::ErrorKind::InvalidInput, "it is no address");
    let socket = at.to_socket_addrs()?.next().ok_or_else(no_address)?;
    let mut stream = TcpStream::connect_timeout(&socket, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = "host:version";
    stream.write_all(format!("{:04x}{request}", request.len()).as_bytes())?;
    let mut answer = Vec::new();
    stream.take(64).read_to_end(&mut answer)?;
    let text = String::from_utf8_lossy(&answer);
    let version = text.strip_prefix("OKAY").and_then(|rest| rest.get(4..8));
    Ok(version.map_or_else(|| text.to_string(), str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn server(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 16];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(&request, b"000chost:version");
            stream.write_all(answer.as_bytes()).unwrap();
        });
        format!("tcp:{at}")
    }

    fn check(socket: &str) -> Result<(), String> {
        let variable = |name: &str| (name == "ADB_SERVER_SOCKET").then(|| socket.to_owned());
        check_server("Android Debug Bridge version 1.0.41", &variable).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_of_the_clients_version_is_taken_and_no_other() {
        assert_eq!(check(&server("OKAY00040029")), Ok(()));
        assert!(check(&server("OKAY00040028")).unwrap_err().contains("version 40, and adb of version 41"));
        assert!(check(&server("HTTP/1.1 400")).unwrap_err().contains("is not one of this adb"));
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(check(&format!("tcp:{free}")).unwrap_err().contains("no adb server listens"));
        assert_eq!(check("localabstract:adb"), Ok(()), "it is not looked at");
    }
}
