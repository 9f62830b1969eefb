//! What the mail says, in the languages of the waiting page. `{name}` is the room.

/// The texts of one language.
pub(super) struct MailText {
    pub(super) code: &'static str,
    pub(super) direction: &'static str,
    pub(super) subject: &'static str,
    pub(super) turn: &'static str,
    pub(super) link: &'static str,
    pub(super) why: &'static str,
}

/// The texts of a language; English for any other.
pub(super) fn text_of(code: &str) -> &'static MailText {
    TEXTS.iter().find(|text| text.code == code).unwrap_or(&TEXTS[0])
}

const TEXTS: [MailText; 8] = [
    MailText {
        code: "en",
        direction: "ltr",
        subject: "It is your turn: {name}",
        turn: "Your turn at “{name}” has come. Your place is kept for a short time only.",
        link: "Open the page in the browser in which you queued",
        why: "You get this one mail because you asked for it on the waiting page.",
    },
    MailText {
        code: "th",
        direction: "ltr",
        subject: "ถึงคิวของคุณแล้ว: {name}",
        turn: "ถึงคิวของคุณที่ “{name}” แล้ว สิทธิ์นี้เก็บไว้ให้เพียงช่วงสั้น ๆ",
        link: "เปิดหน้านี้ในเบราว์เซอร์เดียวกับที่คุณเข้าคิว",
        why: "คุณได้รับอีเมลฉบับนี้ฉบับเดียว เพราะขอไว้ในหน้ารอคิว",
    },
    MailText {
        code: "de",
        direction: "ltr",
        subject: "Sie sind an der Reihe: {name}",
        turn: "Sie sind bei „{name}“ an der Reihe. Ihr Platz bleibt nur kurze Zeit frei.",
        link: "Öffnen Sie die Seite in dem Browser, in dem Sie gewartet haben",
        why: "Sie erhalten diese eine Nachricht, weil Sie auf der Warteseite darum gebeten haben.",
    },
    MailText {
        code: "es",
        direction: "ltr",
        subject: "Es su turno: {name}",
        turn: "Ha llegado su turno en «{name}». Su lugar se guarda poco tiempo.",
        link: "Abra la página en el navegador en el que hizo la cola",
        why: "Recibe este único correo porque lo pidió en la página de espera.",
    },
    MailText {
        code: "fr",
        direction: "ltr",
        subject: "C’est votre tour : {name}",
        turn: "C’est votre tour pour « {name} ». Votre place n’est gardée que peu de temps.",
        link: "Ouvrez la page dans le navigateur où vous avez attendu",
        why: "Vous recevez ce seul message parce que vous l’avez demandé sur la page d’attente.",
    },
    MailText {
        code: "ja",
        direction: "ltr",
        subject: "順番が来ました: {name}",
        turn: "「{name}」の順番が来ました。場所が確保されるのは短い時間だけです。",
        link: "お並びになったブラウザーでページを開いてください",
        why: "待機ページでのご希望により、このメールを一通だけお送りしています。",
    },
    MailText {
        code: "zh",
        direction: "ltr",
        subject: "轮到您了：{name}",
        turn: "“{name}”轮到您了。您的位置只会保留很短的时间。",
        link: "请在您排队时使用的浏览器中打开页面",
        why: "您在等候页面上要求提醒，因此收到这一封邮件。",
    },
    MailText {
        code: "ar",
        direction: "rtl",
        subject: "حان دورك: {name}",
        turn: "حان دورك في «{name}». يُحفظ مكانك لوقت قصير فقط.",
        link: "افتح الصفحة في المتصفح الذي انتظرت فيه",
        why: "وصلتك هذه الرسالة الوحيدة لأنك طلبتها في صفحة الانتظار.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_names_the_room() {
        for text in &TEXTS {
            assert!(text.subject.contains("{name}") && text.turn.contains("{name}"));
            assert_eq!(text_of(text.code).subject, text.subject);
        }
        assert_eq!(text_of("xx").code, "en");
    }
}
